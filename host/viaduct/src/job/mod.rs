// SPDX-License-Identifier: Apache-2.0
//! Runs of an app over files: streams, lanes, mapped memory.

mod buffered;
mod endpoint;
mod ethernet;
mod flow;
mod lanes;
mod memory_job;
mod stream;

pub use endpoint::Endpoint;
pub use flow::Stream;
pub use lanes::LaneJob;
pub use memory_job::{MemoryJob, MemoryRange, MemoryReport};
pub use stream::{JobReport, OutLength, Progress, StreamJob};
