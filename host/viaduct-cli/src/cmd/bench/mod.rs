// SPDX-License-Identifier: Apache-2.0
//! `viaduct bench`: figures of the simulated card. All but those of the simulator itself and of a guest are card time, so
//! that every machine prints the same, idle or busy; each is printed only after the data was compared.

mod apps;
mod calibrate;
mod dma;
mod fsrf;
mod guest;
mod loopback;
mod made;
mod mem;
mod plot;
mod rival;
mod rng;
mod share;
mod sim;
mod vio;
mod virtio;
mod worker;
mod xdma;

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use serde_json::{Value, json};
use viaduct::desc::{Completion, Status};
use viaduct::{Register, Slot, Tag};
use viaduct_build::{Manifest, Project, Variant};

use crate::card::{COMPLETION, CardArgs, CardSpec, Opened, REQUEST, WaitArgs};
use crate::cmd::bench::plot::{Folder, rounded};
use crate::fail::{Failure, Result, at, usage};
use crate::process::tell::out;

/// Measure the simulated card; every figure is checked before it is printed
#[derive(clap::Args)]
pub struct Args {
    /// What to measure; unless given, everything but `share`, `calibrate`, `fsrf`, `guest` and `loopback`
    what: Vec<What>,
    /// Board and link to simulate; `viaduct info card` lists them
    #[arg(long, value_name = "NAME", value_parser = crate::card::known_profile)]
    profile: Option<String>,
    /// For `guest`: round trips of each size
    #[arg(long, value_name = "N", default_value_t = 300, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    rounds: u32,
    /// For `guest` and `loopback`: the kernel, as for `viaduct vm`
    #[arg(long, value_name = "NAME", default_value = "6.12", value_parser = crate::cmd::vm::KERNELS)]
    kernel: String,
    #[command(flatten)]
    choice: fsrf::Choice,
    /// Small sizes and few cases, for tests: the figures differ from those in the documents
    #[arg(long)]
    quick: bool,
    /// Print a JSON array
    #[arg(long)]
    json: bool,
    /// Also draw the figures into this folder, as SVG files; those of `sim` are not drawn
    #[arg(long, value_name = "FOLDER")]
    plot: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum What {
    /// The simulator: cycles per second on this machine, and the pager's processor time
    Sim,
    /// Copies between host and card memory
    Dma,
    /// An app with random accesses to its memory
    Mem,
    /// Every app with streams
    Apps,
    /// Round trips and throughput of the network device
    Virtio,
    /// Messages through apps in sequence, on the card
    Vio,
    /// Card memory shared by four slots, and by small and large accesses
    Share,
    /// Card memory of profile f1 against the board it is calibrated to
    Calibrate,
    /// The workloads of the FSRF paper, on this card and on the systems of its Table 2
    Fsrf,
    /// Round trips of a program in a Linux guest, through the network device and through the XDMA-compatible function
    Guest,
    /// A disk of a process on the same machine, through kernel/loopback, vDUSE and its file, in a Linux guest
    Loopback,
}

/// Sizes of the measurements.
struct Scale {
    /// Bytes of one DMA measurement, and of each of its commands.
    dma: u64,
    dma_pieces: &'static [u64],
    /// Memory that the app of `mem` works on, and random accesses to it of 64 and of 4096 bytes.
    mem: u64,
    accesses: [u64; 2],
    /// Memory with small pages that is larger than what a slot's TLBs hold, and accesses to it: with the page table, and by the host;
    /// 0 leaves a case out.
    beyond: (u64, [u64; 2]),
    /// Message that is sent through every app.
    app: usize,
    /// For `share` and `calibrate`: pages of 2 MiB per slot, bytes moved by each in large and in small accesses.
    pages: u64,
    /// For `share`: bytes moved by each of four slots, so many that no channel gets many more of the random accesses than another.
    share: u64,
    /// For `share`: bytes that the DMA engine fills at the end of channel 0, so many that it does not end before what is measured beside it.
    fill: u64,
    calibrate_large: u64,
    calibrate_small: u64,
    vio: vio::VioScale,
    /// All rings, latencies and sizes of the network device.
    virtio_all: bool,
}

impl Scale {
    const FULL: Self = Self {
        dma: 4 << 20,
        dma_pieces: &[4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20],
        mem: 8 << 20,
        accesses: [4096, 1024],
        beyond: (64 << 20, [16384, 1024]),
        app: 1 << 20,
        pages: 4,
        share: 64 << 20,
        fill: 8 << 20,
        calibrate_large: 8 << 20,
        calibrate_small: 2 << 20,
        vio: vio::VioScale {
            messages: &[64, 4 << 10, 64 << 10, 4 << 20],
            each: 100,
            many: Some(100),
            narrow: vio::NarrowScale {
                sizes: &[64, 1 << 10, 4 << 10, 64 << 10, 1 << 20, 16 << 20, 64 << 20],
                total: 1 << 20,
                commands: 1_000,
                memory: 8 << 20,
            },
            ports: vio::PortScale {
                messages: &[64, 4 << 10, 64 << 10, 1 << 20],
                bytes: 1 << 20,
                slow: 128 << 10,
                changes: 20_000,
                mux_changes: 2_000,
            },
            schedulers: vio::SchedulerScale { subsets: 3, beats: 12_800, requests: 1_000 },
            ethernet: vio::EthernetScale {
                gbps: &[1, 10, 100],
                frames: &[64, 72, 128, 256, 512, 1024, 1518, 9018],
                bytes: 512 << 10,
                least: 128,
            },
            driver: vio::DriverScale { bytes: 16 << 20, image: 4 << 20 },
        },
        virtio_all: true,
    };
    const QUICK: Self = Self {
        dma: 1 << 20,
        dma_pieces: &[64 << 10, 1 << 20],
        mem: 256 << 10,
        accesses: [512, 32],
        beyond: (0, [0, 0]),
        app: 64 << 10,
        pages: 1,
        share: 256 << 10,
        fill: 1 << 20,
        calibrate_large: 256 << 10,
        calibrate_small: 32 << 10,
        vio: vio::VioScale {
            messages: &[64, 16 << 10],
            each: 10,
            many: None,
            narrow: vio::NarrowScale {
                sizes: &[64, 64 << 10],
                total: 64 << 10,
                commands: 100,
                memory: 256 << 10,
            },
            ports: vio::PortScale {
                messages: &[64, 64 << 10],
                bytes: 64 << 10,
                slow: 16 << 10,
                changes: 1_000,
                mux_changes: 200,
            },
            schedulers: vio::SchedulerScale { subsets: 1, beats: 3_200, requests: 100 },
            ethernet: vio::EthernetScale {
                gbps: &[10, 100],
                frames: &[64, 1518],
                bytes: 32 << 10,
                least: 16,
            },
            driver: vio::DriverScale { bytes: 1 << 20, image: 64 << 10 },
        },
        virtio_all: false,
    };
}

/// Limit of waits: longer than anything here takes on any machine. A wait that checked the card for activity before its
/// end would take card time.
const PATIENCE: Duration = Duration::from_secs(6 * 3600);

/// One figure.
struct Figure {
    what: String,
    value: f64,
    unit: &'static str,
    note: String,
}

/// Runs the command.
pub fn run(args: Args) -> Result {
    let all = [What::Dma, What::Mem, What::Apps, What::Vio, What::Virtio, What::Sim];
    let what = if args.what.is_empty() { all.to_vec() } else { args.what.clone() };
    refuse_others(&args, &what)?;
    args.choice.check_resume()?;
    let project = crate::project::find()?;
    let card = CardArgs {
        card: CardSpec::Sim,
        profile: args.profile,
        timeout: Some(PATIENCE.as_secs()),
        wait: WaitArgs::default(),
    };
    let scale = if args.quick { Scale::QUICK } else { Scale::FULL };
    let folder = args.plot.as_deref().map(Folder::new).transpose()?;
    let mut figures = Vec::new();
    for what in what {
        let mut plots = Vec::new();
        // A new card, so that no figure depends on earlier measurements.
        let open = || card.open(Variant::Fast);
        let new = match what {
            What::Sim => sim::run(&project, &card)?,
            What::Virtio => virtio::virtio(&project, &card, scale.virtio_all, &mut plots)?,
            What::Share => share::share(&project, &card, &scale, &mut plots)?,
            What::Calibrate => calibrate::calibrate(&project, &card, &scale, &mut plots)?,
            What::Guest => {
                guest::guest(&project, card.profile.as_deref(), &args.kernel, args.rounds, &mut plots)?
            }
            What::Loopback => loopback::loopback(&project, &args.kernel, args.quick, &mut plots)?,
            What::Fsrf => fsrf::fsrf(&project, &card, &args.choice, args.quick, &mut plots)?,
            What::Dma => dma::dma(&project, &card, &open()?, &scale, &mut plots)?,
            What::Mem => mem::mem(&project, &open()?, &scale, &mut plots)?,
            What::Apps => apps::apps(&project, &open()?, scale.app, &mut plots)?,
            What::Vio => vio::vio(&project, &card, &open()?, &scale.vio, &mut plots)?,
        };
        if !args.json {
            for f in &new {
                out(&format!("{:52} {:>8} {:8} {}", f.what, rounded(f.value), f.unit, f.note))?;
            }
        }
        figures.extend(new);
        if let Some(folder) = &folder {
            for plot in &plots {
                tell!("plot: {}", folder.write(plot)?.display());
            }
            if plots.is_empty() {
                let name = what.to_possible_value().map(|v| v.get_name().to_owned()).unwrap_or_default();
                tell!("plot: {name} has nothing to plot: its figures are those of this machine");
            }
        }
    }
    if args.json {
        let list: Vec<Value> = figures
            .iter()
            .map(|f| json!({"what": f.what, "value": f.value, "unit": f.unit, "note": f.note}))
            .collect();
        out(&Value::from(list).to_string())?;
    }
    Ok(())
}

/// Options of a measurement that is not made would have no effect.
fn refuse_others(args: &Args, what: &[What]) -> Result {
    let usual: Args = crate::options::usual();
    if !what.contains(&What::Guest) && args.rounds != usual.rounds {
        return usage("--rounds is for `bench guest`; leave it out");
    }
    if !what.contains(&What::Guest) && !what.contains(&What::Loopback) && args.kernel != usual.kernel {
        return usage("--kernel is for `bench guest` and `bench loopback`; leave it out");
    }
    if !what.contains(&What::Fsrf) && args.choice != usual.choice {
        return usage(
            "--system, --workload, --pages, --host-us, --disk-us, --divide, --resume and --sweep are for `bench fsrf`; leave them out",
        );
    }
    Ok(())
}

fn wrong<T>(what: &str) -> Result<T> {
    Err(Failure::Check(format!("{what}: wrong data, so there is no figure")))
}

/// A size with its unit.
fn size_of(bytes: u64) -> String {
    match bytes {
        b if b >= 1 << 20 && b.is_power_of_two() => format!("{} MiB", b >> 20),
        b if b >= 1 << 10 && b.is_power_of_two() => format!("{} KiB", b >> 10),
        b => format!("{b} B"),
    }
}

/// Throughput of the link in each direction with packets of the largest size, in GB/s.
fn link_limits(opened: &Opened) -> Vec<(&'static str, f64)> {
    let Some(sim) = &opened.sim else { return Vec::new() };
    let most = f64::from(sim.profile.link.mps);
    let rate = sim.bytes_per_cycle() * f64::from(sim.profile.clk_khz) / 1e6;
    [("to the card", COMPLETION), ("from the card", REQUEST)]
        .map(|(way, header)| (way, rate * most / (most + header as f64)))
        .to_vec()
}

/// Throughput of one beat per cycle, in GB/s.
fn beats(opened: &Opened) -> f64 {
    opened.card.info().data_bytes as f64 * f64::from(opened.card.info().clock_khz) / 1e6
}

fn set(slot: &Slot, app: &Manifest, name: &str, value: u64) -> Result {
    let place = register(app, name)?;
    let bytes = place.width.div_ceil(8).min(8) as usize;
    Ok(slot.write_wide(place, &value.to_le_bytes()[..bytes])?)
}

fn read(slot: &Slot, app: &Manifest, name: &str) -> Result<u64> {
    let bytes = slot.read_wide(register(app, name)?)?;
    Ok(bytes.iter().rev().fold(0, |value, b| value << 8 | u64::from(*b)))
}

/// A register of an app.
fn register(app: &Manifest, name: &str) -> Result<Register> {
    match app.register(name) {
        Some(r) => Ok(Register { offset: r.offset, width: r.width }),
        None => Err(Failure::Run(format!("app {} has no register {name}", app.name))),
    }
}

fn image(project: &Project, opened: &Opened, app: &Manifest) -> Result<Vec<u8>> {
    let image = crate::project::build(project, app, opened.card.info(), Variant::Fast)?;
    std::fs::read(&image.container).map_err(at(image.container.display()))
}

/// When the last one of these commands was completed, in cycles.
fn last_completion(slot: &Slot, submitted: &[Tag]) -> Result<Option<u64>> {
    let done = slot.wait(submitted)?;
    match done.iter().find(|c| c.status != Status::Ok) {
        Some(Completion { status, .. }) => Err(Failure::Run(format!("command failed: {status}"))),
        None => Ok(done.iter().map(|c| c.time).max()),
    }
}

/// Jain's index: 1 if all are equal, 1 / n if one of n has everything.
fn jain(values: &[f64]) -> f64 {
    let sum: f64 = values.iter().sum();
    let squares: f64 = values.iter().map(|value| value * value).sum();
    sum * sum / (values.len() as f64 * squares)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_shares_have_an_index_of_one() {
        assert_eq!(jain(&[3.0; 4]), 1.0);
        assert_eq!(jain(&[5.0, 0.0, 0.0, 0.0]), 0.25);
        assert!(jain(&[1.0, 1.0, 1.0, 0.7]) < 0.99);
    }
}
