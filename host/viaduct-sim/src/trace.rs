// SPDX-License-Identifier: Apache-2.0
//! A trace of what crosses the boundaries of the parts of a simulated card (`sim/trace.h`).

use crate::ffi::Record;

/// What a record of a trace is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Traced {
    /// Data into an input stream of an app.
    StreamIn {
        /// The app's slot.
        slot: u16,
        /// Number of the stream.
        stream: u16,
    },
    /// Data from an output stream of an app.
    StreamOut {
        /// The app's slot.
        slot: u16,
        /// Number of the stream.
        stream: u16,
    },
    /// Data of reads of an app's memory port.
    SlotRead {
        /// The app's slot.
        slot: u16,
    },
    /// Data of writes of an app's memory port.
    SlotWrite {
        /// The app's slot.
        slot: u16,
    },
    /// Data read from a DRAM channel.
    DramRead {
        /// The channel.
        channel: u16,
    },
    /// Data written to a DRAM channel.
    DramWrite {
        /// The channel.
        channel: u16,
    },
    /// Data of reads of host memory by a function, as the shell receives it.
    HostRead {
        /// The function; 0 is the management function with the DMA engine and the slots.
        function: u16,
    },
    /// Data of writes to host memory by a function, as the shell sends it.
    HostWrite {
        /// The function.
        function: u16,
    },
    /// Data from a function to its board port.
    PortTx {
        /// The function.
        function: u16,
    },
    /// Data to a function from its board port.
    PortRx {
        /// The function.
        function: u16,
    },
    /// An app is in a slot.
    Loaded {
        /// The slot.
        slot: u16,
    },
    /// An app reports that it computes.
    Busy {
        /// The app's slot.
        slot: u16,
    },
    /// Interrupt of an app.
    AppInterrupt {
        /// The app's slot.
        slot: u16,
    },
    /// MSI-X message of the card.
    Interrupt {
        /// The function that sends it.
        function: u16,
        /// Its vector.
        vector: u16,
    },
    /// The host reads a register at offset [`TraceRecord::amount`].
    RegisterRead {
        /// The function.
        function: u16,
        /// BAR, or 6 for configuration space.
        space: u16,
    },
    /// The host writes a register at offset [`TraceRecord::amount`]; posted, so without a duration.
    RegisterWrite {
        /// The function.
        function: u16,
        /// BAR, or 6 for configuration space.
        space: u16,
    },
    /// [`TraceRecord::amount`] picoseconds of the interval were taken by packets on the link from the card.
    LinkFromCard,
    /// The same for the link to the card.
    LinkToCard,
}

/// An interval or, if `begin` and `end` are equal, a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceRecord {
    /// What it is about.
    pub what: Traced,
    /// First cycle.
    pub begin: u64,
    /// The first cycle after it.
    pub end: u64,
    /// Of data: bytes; else see [`Traced`].
    pub amount: u64,
    /// Of data: cycles in which the sender waited for the receiver.
    pub waited: u64,
}

impl TraceRecord {
    /// `None` if the kind is not known.
    fn of(record: &Record) -> Option<Self> {
        let Record { begin, end, amount, waited, kind, index, port } = *record;
        let what = match kind {
            0 => Traced::StreamIn { slot: index, stream: port },
            1 => Traced::StreamOut { slot: index, stream: port },
            2 => Traced::SlotRead { slot: index },
            3 => Traced::SlotWrite { slot: index },
            4 => Traced::DramRead { channel: index },
            5 => Traced::DramWrite { channel: index },
            6 => Traced::HostRead { function: index },
            7 => Traced::HostWrite { function: index },
            8 => Traced::PortTx { function: index },
            9 => Traced::PortRx { function: index },
            10 => Traced::Loaded { slot: index },
            11 => Traced::Busy { slot: index },
            12 => Traced::AppInterrupt { slot: index },
            13 => Traced::Interrupt { function: index, vector: port },
            14 => Traced::RegisterRead { function: index, space: port },
            15 => Traced::RegisterWrite { function: index, space: port },
            16 => Traced::LinkFromCard,
            17 => Traced::LinkToCard,
            _ => return None,
        };
        Some(Self { what, begin, end, amount, waited })
    }
}

/// Receives the records. It is called while the card stands still, so it must not use the card.
pub type TraceSink = Box<dyn FnMut(Vec<TraceRecord>) + Send>;

/// A trace in progress.
pub(crate) struct Tracing {
    sink: TraceSink,
    buffer: Box<[Record; 256]>,
}

impl Tracing {
    /// Passes records to `sink`.
    pub fn new(sink: TraceSink) -> Self {
        Self { sink, buffer: Box::new([Record::default(); 256]) }
    }

    /// Passes on the records that `take` yields.
    pub fn pass_on(&mut self, mut take: impl FnMut(&mut [Record]) -> usize) {
        loop {
            let count = take(&mut self.buffer[..]);
            if count > 0 {
                (self.sink)(self.buffer[..count].iter().filter_map(TraceRecord::of).collect());
            }
            if count < self.buffer.len() {
                return;
            }
        }
    }
}
