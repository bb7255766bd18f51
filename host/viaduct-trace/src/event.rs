// SPDX-License-Identifier: Apache-2.0
//! Events of Chrome's trace format (Trace Event Format, "JSON Array Format"), which trace viewers read.

use serde::Serialize;
use serde_json::{Map, Value};

/// Which process of the viewer, which groups lanes, an event belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Group {
    /// The program that uses the card.
    Host,
    /// The PCIe link.
    Link,
    /// A slot.
    Slot(u16),
    /// DRAM.
    Memory,
    /// A function of the card.
    Function(u16),
}

impl Group {
    /// Number of the process, which is also its place in the viewer.
    pub fn number(self) -> u32 {
        match self {
            Self::Host => 1,
            Self::Link => 2,
            Self::Slot(slot) => 10 + u32::from(slot),
            Self::Memory => 100,
            Self::Function(function) => 200 + u32::from(function),
        }
    }

    /// Its name.
    pub fn name(self) -> String {
        match self {
            Self::Host => "host".into(),
            Self::Link => "link".into(),
            Self::Slot(slot) => format!("slot {slot}"),
            Self::Memory => "card memory".into(),
            Self::Function(function) => {
                let name = viaduct_sim::function_name(function.into()).unwrap_or("unknown");
                format!("function {function}: {name}")
            }
        }
    }
}

/// Kind of event, `ph` in the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Phase {
    /// An interval in a lane.
    #[serde(rename = "X")]
    Complete,
    /// A moment in a lane.
    #[serde(rename = "i")]
    Instant,
    /// A call begins in a thread.
    #[serde(rename = "B")]
    Begin,
    /// It ends.
    #[serde(rename = "E")]
    End,
    /// An interval begins that may overlap others of its name.
    #[serde(rename = "b")]
    AsyncBegin,
    /// It ends.
    #[serde(rename = "e")]
    AsyncEnd,
    /// Value of a counter from now on.
    #[serde(rename = "C")]
    Counter,
    /// Names something.
    #[serde(rename = "M")]
    Metadata,
}

/// An event as it is written. Times are in microseconds.
#[derive(Debug, Serialize)]
pub struct Event {
    pub ph: Phase,
    pub pid: u32,
    pub tid: u32,
    pub name: String,
    pub ts: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dur: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cat: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<u32>,
    /// Of a moment: how tall it is drawn; `t`, its lane.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub s: Option<&'static str>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub args: Map<String, Value>,
}

impl Event {
    /// An event without a duration.
    pub fn new(ph: Phase, pid: u32, tid: u32, name: impl Into<String>, ts: f64) -> Self {
        let s = (ph == Phase::Instant).then_some("t");
        Self { ph, pid, tid, name: name.into(), ts, dur: None, cat: None, id: None, s, args: Map::new() }
    }

    /// The same with an argument.
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.args.insert(name.to_owned(), value.into());
        self
    }
}
