// SPDX-License-Identifier: Apache-2.0
//! Profiles of boards that can be simulated: link, DRAM, ports and clock.

use crate::kinds::{CONSOLE, ENTROPY, INPUT, NET};

/// Largest number of functions of a card, the management function included.
pub(crate) const FUNCTIONS: usize = 16;

/// PCIe link, as seen by the card. The raw rate follows from generation and lanes.
#[repr(C)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Generation, 1 to 5.
    pub generation: u32,
    /// Lanes: 1, 2, 4, 8 or 16.
    pub lanes: u32,
    /// Largest payload of a write or completion, bytes.
    pub mps: u32,
    /// Largest read request, bytes.
    pub mrrs: u32,
    /// Completions end on these boundaries, bytes.
    pub rcb: u32,
    /// Read requests in flight.
    pub tags: u32,
    /// From a request leaving the card to the arrival of the first completion, unloaded.
    pub read_latency_ns: u32,
    /// From the last byte leaving the card until it is visible in host memory.
    pub write_latency_ns: u32,
    /// Duration of a host load, without the card's own cycles.
    pub mmio_read_ns: u32,
    /// From a host store until it reaches the card.
    pub mmio_write_ns: u32,
    /// From an MSI-X write leaving the card until the host's handler may run.
    pub irq_latency_ns: u32,
    /// The host's limit on reads, per cent of what the link carries.
    pub read_efficiency_pct: u32,
    /// The same for writes.
    pub write_efficiency_pct: u32,
}

/// One DRAM channel: size, and bank timing in picoseconds, named as JEDEC does.
#[repr(C)]
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)] // the names of the timing parameters are their definition
pub struct Dram {
    /// Size in MiB.
    pub mib: u32,
    /// Bytes of a burst.
    pub data_bytes: u32,
    /// Time a burst occupies the data bus.
    pub burst_ps: u32,
    pub banks: u32,
    /// Bank groups, 1: none. Consecutive bursts go to consecutive groups.
    pub groups: u32,
    pub row_bytes: u32,
    pub t_rcd_ps: u32,
    pub t_rp_ps: u32,
    pub t_ras_ps: u32,
    pub t_cl_ps: u32,
    pub t_cwl_ps: u32,
    pub t_wr_ps: u32,
    /// From the end of write data to a read command.
    pub t_wtr_ps: u32,
    /// From a read command to a write command.
    pub t_rtw_ps: u32,
    /// Between two column commands to any banks (tCCD_S of DDR4).
    pub t_ccd_ps: u32,
    /// The same for banks of one group (tCCD_L).
    pub t_ccd_l_ps: u32,
    pub t_faw_ps: u32,
    pub t_refi_ps: u32,
    pub t_rfc_ps: u32,
    /// 0: a controller that chooses among `queue` requests. Otherwise the number of its state machines, each of which
    /// serves a bank group in order (see `sim/dram.h`).
    pub machines: u32,
    /// Requests that the controller chooses among, or that a machine holds.
    pub queue: u32,
    /// With machines: reads whose data is not delivered yet.
    pub read_fifo: u32,
    /// With machines: writes not accepted yet.
    pub write_fifo: u32,
    /// With machines: period of the controller's clock.
    pub clock_ps: u32,
    /// With machines: from the opening of a row to the row commands of the next request.
    pub machine_ps: u32,
    /// With machines: after this time without a read a dummy read is issued, for the PHY. 0: never.
    pub track_ps: u32,
    /// Fixed latency of controller and PHY.
    pub controller_ps: u32,
}

impl Dram {
    /// The members in order, as `vsim_dram` has them, for a simulator in another program.
    pub fn words(&self) -> [u32; 27] {
        let Self {
            mib,
            data_bytes,
            burst_ps,
            banks,
            groups,
            row_bytes,
            t_rcd_ps,
            t_rp_ps,
            t_ras_ps,
            t_cl_ps,
            t_cwl_ps,
            t_wr_ps,
            t_wtr_ps,
            t_rtw_ps,
            t_ccd_ps,
            t_ccd_l_ps,
            t_faw_ps,
            t_refi_ps,
            t_rfc_ps,
            machines,
            queue,
            read_fifo,
            write_fifo,
            clock_ps,
            machine_ps,
            track_ps,
            controller_ps,
        } = *self;
        [
            mib,
            data_bytes,
            burst_ps,
            banks,
            groups,
            row_bytes,
            t_rcd_ps,
            t_rp_ps,
            t_ras_ps,
            t_cl_ps,
            t_cwl_ps,
            t_wr_ps,
            t_wtr_ps,
            t_rtw_ps,
            t_ccd_ps,
            t_ccd_l_ps,
            t_faw_ps,
            t_refi_ps,
            t_rfc_ps,
            machines,
            queue,
            read_fifo,
            write_fifo,
            clock_ps,
            machine_ps,
            track_ps,
            controller_ps,
        ]
    }
}

/// Ports of the board.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Board {
    /// Ethernet port of the network function, Gbit/s. Preamble, FCS and gap are counted.
    pub ethernet_gbps: u32,
    /// Buffer of its MAC in each direction. A frame keeps its place until its last bit has left, or until the card has taken it.
    pub ethernet_fifo_bytes: u32,
    /// Longest frame that the port passes on, with FCS: 1518 to 9238 bytes.
    pub ethernet_max_frame: u32,
    /// UART of the console.
    pub uart_bytes_per_second: u32,
    /// Entropy source.
    pub entropy_bytes_per_second: u32,
}

impl Board {
    /// Rates of Ethernet that a port can be set to, Gbit/s.
    pub const ETHERNET_GBPS: [u32; 4] = [1, 10, 25, 100];
    /// The highest limit of the length of frames that a port can be set to, with FCS, in bytes.
    pub const LONGEST_FRAME: u32 = 9238;
    /// The longest frame of plain Ethernet (IEEE 802.3), with FCS, in bytes: no port is set to less.
    pub const LEAST_LIMIT: u32 = 1518;

    /// 10 Gbit/s with a buffer of 64 KiB, and frames up to what the network device carries: 9216 bytes of payload, a header with a VLAN tag
    /// and the FCS. The UART is one behind a USB bridge of the FT232H class: 12 Mbaud, ten bits per
    /// byte. The entropy source gives 10 Mbit/s, the order of conditioned ring oscillators.
    const SMALL: Self = Self {
        ethernet_gbps: 10,
        ethernet_fifo_bytes: 64 << 10,
        ethernet_max_frame: Self::LONGEST_FRAME,
        uart_bytes_per_second: 1_200_000,
        entropy_bytes_per_second: 1_250_000,
    };

    /// Ports in the form that the card expects, by function.
    pub(crate) fn ports(&self) -> [Port; FUNCTIONS] {
        let mut ports = [Port::default(); FUNCTIONS];
        ports[NET] = Port {
            kind: 1,
            fifo_bytes: self.ethernet_fifo_bytes,
            bytes_per_second: u64::from(self.ethernet_gbps) * 125_000_000,
            max_frame: self.ethernet_max_frame,
            reserved: 0,
        };
        ports[CONSOLE] = Port::serial(2, 256, self.uart_bytes_per_second.into());
        ports[ENTROPY] = Port::serial(3, 64, self.entropy_bytes_per_second.into());
        // Keys are connected to pins.
        ports[INPUT] = Port::serial(4, 64, 0);
        ports
    }
}

/// A board port, as in the header.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Port {
    kind: u32,
    fifo_bytes: u32,
    bytes_per_second: u64,
    max_frame: u32,
    reserved: u32,
}

impl Port {
    fn serial(kind: u32, fifo_bytes: u32, bytes_per_second: u64) -> Self {
        Self { kind, fifo_bytes, bytes_per_second, ..Self::default() }
    }
}

/// A board.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// Name for the command line.
    pub name: &'static str,
    /// One-line description.
    pub summary: &'static str,
    /// Clock of the shell.
    pub clk_khz: u32,
    /// Channels of card memory, each as `dram` says: a power of two, 1 to 16. The shell is built for it.
    pub channels: u32,
    /// PCIe.
    pub link: Link,
    /// Each DRAM channel.
    pub dram: Dram,
    /// Ethernet, UART, entropy source.
    pub board: Board,
}

impl Profile {
    /// A small board: PCIe 2.0 x4, DDR3-1600.
    ///
    /// - Link: 2.0 GB/s raw (8b/10b). MPS 128 and MRRS 512 are what a PC's firmware commonly sets for a small
    ///   endpoint; 32 tags are those of a 5-bit tag field. Latencies as for [`Profile::GEN3X16`], a little longer for
    ///   the slower link: estimates.
    /// - It carries 1.50 GB/s to the card and 1.46 from it, as the model does that [`Profile::GEN3X16`] names. Measured on such a
    ///   link: 1.47 and 1.45 GB/s (Vipin et al., "System-level FPGA device driver with high-level synthesis support", 2013,
    ///   host to DRAM and back): 2.2 and 0.9 % less.
    /// - DRAM: JESD79-3F, DDR3-1600K (11-11-11, CWL 8), one 64-bit module of 4-Gbit x8 devices: 12.8 GB/s. No measurement.
    ///   A controller that chooses among 32 requests and needs 40 ns with its PHY is an estimate, for all profiles.
    pub const GEN2X4: Self = Self {
        name: "gen2x4",
        summary: "small board: PCIe 2.0 x4, DDR3-1600",
        clk_khz: 250_000,
        channels: 4,
        link: Link {
            generation: 2,
            lanes: 4,
            mps: 128,
            mrrs: 512,
            rcb: 64,
            tags: 32,
            read_latency_ns: 750,
            write_latency_ns: 350,
            mmio_read_ns: 1_000,
            mmio_write_ns: 300,
            irq_latency_ns: 1_000,
            read_efficiency_pct: 100,
            write_efficiency_pct: 100,
        },
        dram: Dram {
            mib: 1_024,
            data_bytes: 64,
            burst_ps: 5_000,
            banks: 8,
            groups: 1,
            row_bytes: 8_192,
            t_rcd_ps: 13_750,
            t_rp_ps: 13_750,
            t_ras_ps: 35_000,
            t_cl_ps: 13_750,
            t_cwl_ps: 10_000,
            t_wr_ps: 15_000,
            t_wtr_ps: 7_500,
            t_rtw_ps: 11_250,
            t_ccd_ps: 5_000,
            t_ccd_l_ps: 5_000,
            t_faw_ps: 30_000,
            t_refi_ps: 7_800_000,
            t_rfc_ps: 260_000,
            machines: 0,
            queue: 32,
            read_fifo: 0,
            write_fifo: 0,
            clock_ps: 0,
            machine_ps: 0,
            track_ps: 0,
            controller_ps: 40_000,
        },
        board: Board::SMALL,
    };

    /// A data-centre board: PCIe 3.0 x16, DDR4-2400.
    ///
    /// - Link: 15.75 GB/s raw (128b/130b), as in the model of Neugebauer et al., "Understanding PCIe performance for end host
    ///   networking", SIGCOMM 2018, without further limits. MPS 256, MRRS 512 and RCB 64 are the usual settings of
    ///   servers, and those of that model; 256 tags are those of an 8-bit tag field. Its throughput is that of the model
    ///   within 1 % (`sim/tests/models_test.cpp`): 13.18 GB/s to the card, 12.99 from it, 13.18 and 12.43 when both are
    ///   active (model, for equal shares: 12.46). Measured with a link of this kind: 12.2 and 13.2 GB/s (Coyote on VCK5000, an unmerged change, pull
    ///   request 228): 8 % more and 2 % less.
    /// - Latencies: a read takes 550 ns, the median of a 64-byte DMA read on a Haswell server in that paper (547 ns). A posted
    ///   write is in memory after a little more than half of that, 300 ns. A register read takes about a microsecond, a
    ///   posted register write a third, an interrupt a microsecond. All but the first are estimates of usual magnitude. So
    ///   are the bursts that the link model buffers (128 reads, 64 writes, `sim/link.h` and `sim/link.cpp`): more than the
    ///   card has in flight.
    /// - Ethernet: 100 Gbit/s.
    /// - DRAM: JESD79-4, DDR4-2400R (16-16-16 rounded up to 17, CWL 12, tCCD_L 6 clocks), one 64-bit module of 8-Gbit x8 devices: 19.2 GB/s,
    ///   more than the 16 GB/s of the card's data path. Consecutive bursts go to consecutive bank groups, and the controller reorders well;
    ///   no measurement.
    pub const GEN3X16: Self = Self {
        name: "gen3x16",
        summary: "data-centre board: PCIe 3.0 x16, DDR4-2400",
        clk_khz: 250_000,
        channels: 4,
        link: Link {
            generation: 3,
            lanes: 16,
            mps: 256,
            mrrs: 512,
            rcb: 64,
            tags: 256,
            read_latency_ns: 550,
            write_latency_ns: 300,
            mmio_read_ns: 900,
            mmio_write_ns: 300,
            irq_latency_ns: 1_000,
            read_efficiency_pct: 100,
            write_efficiency_pct: 100,
        },
        dram: Dram {
            mib: 16_384,
            data_bytes: 64,
            burst_ps: 3_333,
            banks: 16,
            groups: 4,
            row_bytes: 8_192,
            t_rcd_ps: 14_160,
            t_rp_ps: 14_160,
            t_ras_ps: 32_000,
            t_cl_ps: 14_160,
            t_cwl_ps: 10_000,
            t_wr_ps: 15_000,
            t_wtr_ps: 7_500,
            t_rtw_ps: 9_163,
            t_ccd_ps: 3_333,
            t_ccd_l_ps: 5_000,
            t_faw_ps: 21_000,
            t_refi_ps: 7_800_000,
            t_rfc_ps: 350_000,
            machines: 0,
            queue: 32,
            read_fifo: 0,
            write_fifo: 0,
            clock_ps: 0,
            machine_ps: 0,
            track_ps: 0,
            controller_ps: 40_000,
        },
        board: Board { ethernet_gbps: 100, ethernet_fifo_bytes: 256 << 10, ..Board::SMALL },
    };

    /// The board of the FSRF measurements (AWS F1): PCIe 3.0 x16, four channels of DDR4-2133, 250 MHz.
    ///
    /// Ethernet at 25 Gbit/s, as the instance has; the board itself has no port.
    ///
    /// - DRAM: the times of that board's controller as its hardware kit configures it (aws-fpga, `ddr4_core.xci`: DDR4-2133,
    ///   17-16-16, CWL 12, tRAS 35, tWR 17, tWTR_L 9, tCCD_L 6 clocks; ROW_COLUMN_BANK_INTLV, AUTO_AP_COL_A3; one rank of 8-Gbit
    ///   x4 devices) and as AMD PG150 and PG353 describe it: four machines, one for each bank group, in order, of two stages.
    /// - Calibrated to Table 2 of the FSRF paper, physical addressing, four channels, in MiB/s: 57,000 read and 54,000 written in
    ///   4 KiB, 57,000 as the mean of seven streams (two are half writes, five only read), 18,000 read and 15,000 written in 64 bytes. Not in the documents and
    ///   chosen for this are: a request in each stage and `machine_ps` (random 64-byte reads), 160 ns besides tRFC (350 ns) to drain
    ///   for a refresh and start again (reads), the FIFOs, and a read every microsecond for the PHY (writes).
    ///   `viaduct bench calibrate` prints the result; tests/test_cli.py checks it to within 5 %.
    /// - Link: warm streaming through PCIe about 9,000 MiB/s, files and software included: 72 % of what the link carries.
    pub const F1: Self = Self {
        name: "f1",
        summary: "as measured for FSRF on AWS F1: PCIe 3.0 x16, DDR4-2133",
        clk_khz: 250_000,
        channels: 4,
        link: Link { read_efficiency_pct: 72, write_efficiency_pct: 72, ..Self::GEN3X16.link },
        dram: Dram {
            mib: 16_384,
            data_bytes: 64,
            burst_ps: 3_750,
            banks: 16,
            groups: 4,
            row_bytes: 8_192,
            t_rcd_ps: 15_000,
            t_rp_ps: 15_000,
            t_ras_ps: 32_813,
            t_cl_ps: 15_938,
            t_cwl_ps: 11_250,
            t_wr_ps: 15_938,
            t_wtr_ps: 8_438,
            t_rtw_ps: 10_313,
            t_ccd_ps: 3_750,
            t_ccd_l_ps: 5_625,
            t_faw_ps: 15_000,
            t_refi_ps: 7_800_000,
            t_rfc_ps: 510_000,
            machines: 4,
            queue: 2,
            read_fifo: 32,
            write_fifo: 2,
            clock_ps: 3_750,
            machine_ps: 18_750,
            track_ps: 1_000_000,
            controller_ps: 40_000,
        },
        board: Board { ethernet_gbps: 25, ethernet_fifo_bytes: 128 << 10, ..Board::SMALL },
    };

    /// A board with one stack of HBM2 in the FPGA's package: PCIe 3.0 x16, 16 pseudo-channels of 256 MiB.
    ///
    /// - Link and Ethernet as [`Profile::GEN3X16`]. The shell has a channel for each pseudo-channel.
    /// - Memory: 64 bits at 1800 MT/s, 14.4 GB/s a pseudo-channel (AMD PG276). A burst of the model is two of HBM2 (four beats of 64 bits),
    ///   one in each of two bank groups, as the default order of address bits in PG276 has it: 64 bytes in four clocks, tCCD_L of
    ///   a group. So the model's 8 banks are pairs of the 16, with rows of 1 KiB each.
    /// - Times: JESD235 as in the configuration HBM2_4Gb_x128 of DRAMsim3 (Li et al., 2020), in nanoseconds: tRCD, tRP and CL 14, tRAS 34, CWL 4,
    ///   tWR 16, tWTR_L 8, tFAW 30 for four rows, so 60 for four pairs, tREFI 3900, tRFC 260.
    /// - The fixed latency is fitted to Wang et al., "Shuhai: Benchmarking High Bandwidth Memory on FPGAs", FCCM 2020, an Alveo U280: 106.7 ns for
    ///   a read that hits an open row. Not fitted are what follows from the times above: it measured 122.2 ns with the row closed,
    ///   137.8 ns with another row open, and 13.27 GB/s a pseudo-channel (425 GB/s of 32). `sim/tests/models_test.cpp`
    ///   compares the model with these: 2 % and 4 ns.
    pub const HBM: Self = Self {
        name: "hbm",
        summary: "one stack of HBM2, 16 pseudo-channels: PCIe 3.0 x16",
        channels: 16,
        dram: Dram {
            mib: 256,
            burst_ps: 4_444,
            banks: 8,
            groups: 1,
            row_bytes: 2_048,
            t_rcd_ps: 14_000,
            t_rp_ps: 14_000,
            t_ras_ps: 34_000,
            t_cl_ps: 14_000,
            t_cwl_ps: 4_000,
            t_wr_ps: 16_000,
            t_wtr_ps: 8_000,
            t_rtw_ps: 14_444,
            t_ccd_ps: 4_444,
            t_ccd_l_ps: 4_444,
            t_faw_ps: 60_000,
            t_refi_ps: 3_900_000,
            t_rfc_ps: 260_000,
            controller_ps: 76_000,
            ..Self::GEN3X16.dram
        },
        ..Self::GEN3X16
    };

    const ALL: [Self; 4] = [Self::GEN2X4, Self::GEN3X16, Self::F1, Self::HBM];

    /// The profile with this name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|profile| profile.name == name)
    }

    /// Names of all profiles.
    pub fn names() -> impl Iterator<Item = &'static str> {
        Self::ALL.into_iter().map(|profile| profile.name)
    }
}

impl Default for Profile {
    fn default() -> Self {
        Self::GEN3X16
    }
}
