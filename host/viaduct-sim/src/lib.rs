// SPDX-License-Identifier: Apache-2.0
//! The simulated card, in this process, as a PCI function.
//!
//! [`SimCard`] opens the Verilated card (`libviaduct_card.so`, made by `make card`) and implements
//! [`PciFunction`](viaduct_pci::PciFunction): the management function. The others are [`SimCard::function`]; the board's ports
//! (Ethernet, UART, ...) are [`SimCard::port`].
//!
//! The card has no thread of its own: it runs inside the calls, and above all inside those that wait
//! ([`PciFunction::wait_irq`](viaduct_pci::PciFunction::wait_irq) and the waits of a port) until the awaited event occurs or the card is idle. As
//! long as one thread waits, the whole card runs. With one thread on the host side everything it does takes the same
//! number of cycles every time; time-outs are the only thing that looks at the wall clock.
#![deny(missing_docs)]

pub mod backend;
mod capture;
mod card;
mod entropy;
mod error;
mod far_end;
mod ffi;
mod function;
mod kinds;
mod line;
mod port;
mod profile;
mod spec;
mod trace;

pub use card::{SimCard, SimConfig};
pub use entropy::Entropy;
pub use error::SimError;
pub use far_end::{FrameInfo, FrameSink, FrameSource, LONGEST_SENT};
pub use ffi::{Counters, FunctionCounters};
pub use kinds::{
    BLK, CONSOLE, ENTROPY, INPUT, NET, XDMA, XDMA_DMA_BAR, XDMA_USER_BAR, function_name, function_names,
};
pub use line::{Line, LinkState};
pub use port::{BoardPort, Packet};
pub use profile::{Board, Dram, Link, Profile};
pub use spec::CardSpec;
pub use trace::{TraceRecord, TraceSink, Traced};
