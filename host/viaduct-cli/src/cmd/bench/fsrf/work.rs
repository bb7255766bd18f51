// SPDX-License-Identifier: Apache-2.0
//! The thirteen workloads of Table 1 of the FSRF paper: memory, registers and moves of each, and what it has to become. The same for every
//! system.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;

use viaduct::Advice;
use viaduct_build::{Access, Image, Manifest, Project, Scratch};

use crate::cmd::bench::wrong;
use crate::fail::{Failure, Result, at};
use crate::job::Values;
use crate::random::Random;

/// Bytes of a small page.
pub const PAGE: u64 = 4096;
/// Slots that run a workload at once, as in the paper.
pub const SLOTS: usize = 4;

/// Sizes, for each of them.
#[derive(Clone, Copy)]
pub struct Sizes {
    /// Bytes of most streams.
    pub stream: u64,
    /// Bytes of a message of each of sixteen lanes, and of the only message of `sha hls`.
    pub message: u64,
    /// Table of `gups`, and updates.
    pub table: u64,
    pub updates: u64,
    /// Memory of `rng`, and bytes of each of its accesses: all of it is accessed once.
    pub random: u64,
    pub access: u64,
    /// Memory that is transferred in accesses of one size: at least the largest one.
    pub transfer: u64,
    /// Blocks of both strings of `nw`.
    pub blocks: [u64; 2],
    /// Vertices and edges of `page rank`, and of `tri`.
    pub ranks: [u64; 2],
    pub triangles: [u64; 2],
    /// Images of `dnn`.
    pub images: u64,
}

impl Sizes {
    /// The paper's small ones, some 32 MiB a slot, over a power of two that is at most 32.
    pub fn small(divide: u64) -> Self {
        let times = 32 / divide;
        Self {
            stream: times << 20,
            message: times << 16,
            table: times << 20,
            updates: times << 14,
            random: times << 20,
            access: 64,
            transfer: times << 23,
            blocks: [64 * times, 1024],
            ranks: [16384 * times, 65536 * times],
            triangles: [1024 * times, 10240 * times],
            images: 4 * times,
        }
    }
}

/// Names of the workloads, in the order of the tables.
pub const NAMES: [&str; 14] = [
    "aes",
    "conv",
    "flow",
    "hll",
    "md5",
    "sha",
    "sha hls",
    "dnn",
    "gups",
    "nw",
    "page rank",
    "rng read",
    "rng write",
    "tri",
];

/// A part of a stream: id, place in memory, bytes, whether the message ends there.
#[derive(Clone, Copy)]
pub struct MoveIn {
    pub id: u8,
    pub at: u64,
    pub bytes: u32,
    pub last: bool,
}

/// Values of registers, little-endian.
pub type Registers = BTreeMap<String, Vec<u8>>;

/// What a slot has moved, and the cycles from its first to its last transfer.
#[derive(Clone, Default, serde::Serialize, serde::Deserialize)]
pub struct Ran {
    pub cycles: u64,
    pub beats_in: u64,
    pub beats_out: u64,
    pub misses: u64,
    /// Pages of 4 KiB that were loaded and written back, and those that stayed in host memory.
    pub loads: u64,
    pub stores: u64,
    pub overflowed: u64,
}

/// What a slot has done.
pub struct Done {
    /// Its memory.
    pub memory: Vec<u8>,
    /// Read-only registers.
    pub registers: Registers,
    /// Bytes and id of each move out.
    pub moved: Vec<(u32, u8)>,
}

/// One workload.
pub struct Work {
    pub name: &'static str,
    pub app: Manifest,
    pub values: Values,
    /// Memory at the beginning; a mapping of all of it, zeros behind the data.
    pub memory: Vec<u8>,
    pub ins: Vec<MoveIn>,
    /// Places and bytes of the moves out.
    pub outs: Vec<(u64, u32)>,
    /// Bytes of a beat that count: an update of `gups` is 8 bytes of each beat.
    pub of_beat: u64,
    expected: Expected,
}

/// A workload and its app, as one slot gets them.
pub struct Task {
    pub work: Work,
    pub image: Image,
    /// Of everything that was built, if results are recorded.
    pub built: String,
}

struct Expected {
    memory: Option<Vec<u8>>,
    registers: Registers,
    /// By id.
    messages: Vec<Vec<u8>>,
}

const LANE_PIECE: u64 = 16 << 10;
const PIECES: u64 = 8;
const LANES: u64 = 16;
const SEED: u64 = 0x1234_5678_9abc_def1;

impl Work {
    /// Pages that it may write: those of its output, or all if it changes its memory. Its input would be a mapping of its own, to be read.
    pub fn writable(&self) -> Range<u64> {
        let pages = |bytes: Range<u64>| bytes.start / PAGE..bytes.end.div_ceil(PAGE);
        if self.expected.memory.as_ref().is_some_and(|memory| *memory != self.memory) {
            return pages(0..self.memory.len() as u64);
        }
        let ends = self.outs.iter().map(|&(place, bytes)| place + u64::from(bytes)).max();
        let start = self.outs.iter().map(|&(place, _)| place).min();
        start.zip(ends).map_or(0..0, |(start, end)| pages(start..end))
    }

    /// Makes a workload, and lets the golden model work on it.
    pub fn new(project: &Project, name: &'static str, sizes: &Sizes) -> Result<Self> {
        let stream = sizes.stream;
        let bytes = |n: u64| Random(7).bytes(n as usize);
        let numbers = |values: &[(&'static str, u64)]| -> Vec<(String, String)> {
            values.iter().map(|(name, value)| ((*name).to_owned(), value.to_string())).collect()
        };
        match name {
            "aes" => {
                let set = vec![("key".to_owned(), "5a".repeat(32)), ("iv".to_owned(), "c3".repeat(16))];
                Self::stream(project, name, "aes", set, &[bytes(stream)], stream)
            }
            "conv" => {
                let width = if stream < 1 << 20 { 1024 } else { 4096 };
                Self::stream(project, name, "conv", numbers(&[("width", width)]), &[bytes(stream)], stream)
            }
            "flow" => {
                let width = if stream < 1 << 20 { 128 } else { 1024 };
                Self::stream(project, name, "flow", numbers(&[("width", width)]), &[bytes(stream)], stream)
            }
            "hll" => Self::stream(project, name, "hll", Vec::new(), &[bytes(stream)], 65536),
            "md5" | "sha" => {
                let mut random = Random(9);
                let all: Vec<_> = (0..LANES).map(|_| random.bytes(sizes.message as usize)).collect();
                let (app, digest) = if name == "md5" { ("md5", 16) } else { ("sha256", 32) };
                Self::stream(project, name, app, Vec::new(), &all, digest)
            }
            "sha hls" => Self::stream(project, name, "sha_hls", Vec::new(), &[bytes(sizes.message)], 32),
            "dnn" => {
                let memory = bytes(923_520 + (1792 + 64) * sizes.images);
                Self::memory(project, name, "dnn", numbers(&[("images", sizes.images)]), memory)
            }
            "gups" => {
                let set = numbers(&[("updates", sizes.updates), ("seed", SEED)]);
                let work = Self::memory(project, name, "gups", set, bytes(sizes.table))?;
                Ok(Self { of_beat: 8, ..work })
            }
            "nw" => {
                let [rows, cols] = sizes.blocks;
                let strings = (16 * rows).next_multiple_of(1024) + 16 * cols;
                let mut memory = bytes(strings);
                memory.resize((strings + rows * cols) as usize, 0);
                Self::memory(project, name, "nw", numbers(&[("rows", rows), ("cols", cols)]), memory)
            }
            "page rank" => {
                let (memory, set) = ranks(sizes.ranks);
                Self::memory(project, name, "pgrnk", numbers(&set), memory)
            }
            "rng read" | "rng write" => {
                let write = u64::from(name == "rng write");
                let count = sizes.random / sizes.access;
                let set = [
                    ("size", sizes.access),
                    ("count", count),
                    ("seed", SEED),
                    ("write", write),
                    ("permute", 1),
                ];
                let data = bytes(sizes.random);
                let sum = sum_of(&data);
                let mut work = Self::memory(project, name, "rng", numbers(&set), data)?;
                if write == 0 {
                    work.expected.registers.insert("checksum".to_owned(), sum.to_le_bytes().to_vec());
                }
                Ok(work)
            }
            _ => Self::memory(project, name, "tri", Vec::new(), graph(sizes.triangles)),
        }
    }

    /// Messages through an app with one stream each way, each with a response of `out` bytes.
    fn stream(
        project: &Project,
        name: &'static str,
        app: &str,
        set: Vec<(String, String)>,
        messages: &[Vec<u8>],
        out: u64,
    ) -> Result<Self> {
        let app = project.load(app)?;
        let values = app.register_values(set.iter().map(|(n, v)| (n.as_str(), v.as_str())))?;
        let len = messages[0].len() as u64;
        let (mut ins, mut outs, mut memory) = (Vec::new(), Vec::new(), Vec::new());
        let piece = if messages.len() > 1 { LANE_PIECE } else { (len / PIECES).next_multiple_of(4096) };
        for at in (0..len).step_by(piece as usize) {
            for id in 0..messages.len() as u64 {
                let bytes = piece.min(len - at);
                let last = at + bytes == len;
                ins.push(MoveIn { id: id as u8, at: id * len + at, bytes: bytes as u32, last });
            }
        }
        messages.iter().for_each(|message| memory.extend(message));
        let mut end = (memory.len() as u64).next_multiple_of(4096);
        let piece = if messages.len() > 1 { out } else { (out / PIECES).next_multiple_of(4096).min(out) };
        for _ in messages {
            for at in (0..out).step_by(piece as usize) {
                let bytes = piece.min(out - at).next_multiple_of(64);
                outs.push((end, bytes as u32));
                end += bytes;
            }
        }
        memory.resize(end as usize, 0);
        let mut expected = Expected { memory: None, registers: BTreeMap::new(), messages: Vec::new() };
        for message in messages {
            let (output, registers) = model(project, &app, &values, "in", message, "out")?;
            expected.messages.push(output);
            if messages.len() == 1 {
                expected.registers = registers;
            }
        }
        Ok(Self { name, app, values, memory, ins, outs, of_beat: 64, expected })
    }

    /// An app that works on its memory.
    fn memory(
        project: &Project,
        name: &'static str,
        app: &str,
        set: Vec<(String, String)>,
        memory: Vec<u8>,
    ) -> Result<Self> {
        let app = project.load(app)?;
        let values = app.register_values(set.iter().map(|(n, v)| (n.as_str(), v.as_str())))?;
        let (after, registers) = model(project, &app, &values, "mem", &memory, "mem")?;
        let expected = Expected { memory: Some(after), registers, messages: Vec::new() };
        Ok(Self { name, app, values, memory, ins: Vec::new(), outs: Vec::new(), of_beat: 64, expected })
    }

    /// What a program would say about its accesses.
    pub fn advice(&self) -> Advice {
        match self.name {
            "gups" | "rng read" | "rng write" | "tri" => Advice::Random,
            _ => Advice::Normal,
        }
    }

    /// Whether its memory belongs to streams.
    pub fn streams(&self) -> bool {
        !self.ins.is_empty()
    }

    /// Names of the registers that are compared.
    pub fn results(&self) -> Vec<String> {
        let read_only = |name: &str| self.app.register(name).is_some_and(|r| r.access == Access::Ro);
        let mut names: Vec<String> =
            self.expected.registers.keys().filter(|n| read_only(n)).cloned().collect();
        if read_only("errors") && !names.iter().any(|n| n == "errors") {
            names.push("errors".to_owned());
        }
        names
    }

    /// Compares what a slot has done with the golden model.
    pub fn check(&self, done: &Done, system: &str) -> Result {
        let what = |part: &str| format!("{}, {system}: {part}", self.name);
        for (name, value) in &done.registers {
            let zeros = vec![0; value.len()];
            let expected = self.expected.registers.get(name).unwrap_or(&zeros);
            if !value.iter().eq(expected.iter().chain(&zeros).take(value.len())) {
                return wrong(&what(&format!("register {name}")));
            }
        }
        if let Some(expected) = &self.expected.memory {
            return if done.memory == *expected { Ok(()) } else { wrong(&what("memory")) };
        }
        if done.moved.len() != self.outs.len() {
            return wrong(&what("moves"));
        }
        let mut got = vec![Vec::<u8>::new(); self.expected.messages.len()];
        for ((at, _), (bytes, id)) in self.outs.iter().zip(&done.moved) {
            let bytes = done.memory.get(*at as usize..(*at + u64::from(*bytes)) as usize);
            match (got.get_mut(usize::from(*id)), bytes) {
                (Some(message), Some(bytes)) => message.extend(bytes),
                _ => return wrong(&what("message")),
            }
        }
        if got == self.expected.messages { Ok(()) } else { wrong(&what("output")) }
    }
}

/// The output and the registers that the golden model of an app gives for an input.
fn model(
    project: &Project,
    app: &Manifest,
    values: &Values,
    input: &str,
    data: &[u8],
    output: &str,
) -> Result<(Vec<u8>, Registers)> {
    let folder = Scratch::new()?;
    let path: PathBuf = folder.path().join("input");
    std::fs::write(&path, data).map_err(at(path.display()))?;
    let inputs = BTreeMap::from([(input.to_owned(), path)]);
    let said = viaduct_build::run_model(project.root(), app, &inputs, values)?;
    let mut registers = BTreeMap::new();
    for name in said.names().filter(|name| *name != output) {
        registers.insert(name.to_owned(), said.bytes(name)?);
    }
    match said.file(output) {
        Some(_) => Ok((said.bytes(output)?, registers)),
        None => Err(Failure::Run(format!("the golden model of {} returned nothing for {output}", app.name))),
    }
}

/// What app rng sums up when it reads everything once.
fn sum_of(data: &[u8]) -> u64 {
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |value, b| value << 8 | u64::from(*b));
    data.chunks_exact(8).map(word).fold(0, u64::wrapping_add)
}

/// Memory and registers of app pgrnk for a graph whose edges go from and to random vertices.
fn ranks([vertices, edges]: [u64; 2]) -> (Vec<u8>, [(&'static str, u64); 4]) {
    let mut random = Random(5);
    let mut vertex = || u64::from(u32::from_le_bytes(std::array::from_fn(|_| random.bytes(1)[0]))) % vertices;
    let mut into = vec![Vec::new(); vertices as usize];
    let mut out = vec![0u64; vertices as usize];
    for _ in 0..edges {
        let (from, to) = (vertex(), vertex());
        into[to as usize].push(from as u32);
        out[from as usize] += 1;
    }
    let one: u64 = 1 << 32;
    let mut memory = Vec::new();
    for (sources, out) in into.iter().zip(&out) {
        memory.extend(one.to_le_bytes());
        memory.extend((sources.len() as u32).to_le_bytes());
        memory.extend(u32::from(*out == 0).to_le_bytes());
    }
    let line = |memory: &mut Vec<u8>| memory.resize(memory.len().next_multiple_of(64), 0);
    line(&mut memory);
    for source in into.iter().flatten() {
        let out = out[*source as usize];
        memory.extend(source.to_le_bytes());
        memory.extend((((1u64 << 31) + out / 2) / out).to_le_bytes()[..4].iter());
    }
    line(&mut memory);
    (0..vertices).for_each(|_| memory.extend(one.to_le_bytes()));
    line(&mut memory);
    memory.extend(vec![0; (8 * vertices).next_multiple_of(64) as usize]);
    let mass = out.iter().filter(|n| **n == 0).count() as u64 * one;
    (memory, [("vertices", vertices), ("edges", edges), ("iterations", 1), ("mass", mass)])
}

/// Memory of app tri for a random graph, as `pack` of its golden model makes it: an edge is in the list of the vertex with fewer.
fn graph([vertices, edges]: [u64; 2]) -> Vec<u8> {
    let mut random = Random(3);
    let mut vertex = || u64::from(u32::from_le_bytes(std::array::from_fn(|_| random.bytes(1)[0]))) % vertices;
    let mut pairs = std::collections::BTreeSet::new();
    while (pairs.len() as u64) < edges {
        let (u, v) = (vertex(), vertex());
        if u != v {
            pairs.insert((u.min(v) as usize, u.max(v) as usize));
        }
    }
    let mut degree = vec![0u64; vertices as usize];
    pairs.iter().flat_map(|(u, v)| [u, v]).for_each(|v| degree[*v] += 1);
    let mut order: Vec<usize> = (0..vertices as usize).collect();
    order.sort_by_key(|v| degree[*v]);
    let mut number = vec![0; vertices as usize];
    order.iter().enumerate().for_each(|(i, v)| number[*v] = i);
    let mut above = vec![Vec::new(); vertices as usize];
    for (u, v) in &pairs {
        let (low, high) = (number[*u].min(number[*v]), number[*u].max(number[*v]));
        above[low].push(high);
    }
    let lines: Vec<u64> =
        above.iter().map(|l| if l.is_empty() { 0 } else { (l.len() as u64 + 1).div_ceil(8) }).collect();
    let mut places = vec![0u64; vertices as usize];
    let mut total = 0;
    for (place, lines) in places.iter_mut().zip(&lines) {
        *place = total;
        total += lines;
    }
    let word = |v: usize| {
        let place = if lines[v] > 0 { places[v] << 36 } else { 0 };
        (v as u64 | lines[v] << 28 | place).to_le_bytes()
    };
    let mut memory = Vec::new();
    for (v, list) in above.iter_mut().enumerate().filter(|(_, list)| !list.is_empty()) {
        list.sort_unstable();
        memory.extend(word(v));
        list.iter().for_each(|w| memory.extend(word(*w)));
        memory.resize(memory.len().next_multiple_of(64), 0xff);
    }
    memory
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stream of two messages in two places, and a register.
    fn work() -> Work {
        let project = Project::find(env!("CARGO_MANIFEST_DIR")).unwrap();
        let messages = vec![vec![1, 2], vec![3, 4, 5]];
        let registers = BTreeMap::from([("errors".to_owned(), vec![7])]);
        Work {
            name: "aes",
            app: project.load("gups").unwrap(),
            values: Values::default(),
            memory: vec![0; 128],
            ins: Vec::new(),
            outs: vec![(0, 64), (64, 64)],
            of_beat: 64,
            expected: Expected { memory: None, registers, messages },
        }
    }

    fn done() -> Done {
        let mut memory = vec![0; 128];
        memory[..3].copy_from_slice(&[3, 4, 5]);
        memory[64..66].copy_from_slice(&[1, 2]);
        let registers = BTreeMap::from([("errors".to_owned(), vec![7, 0, 0, 0])]);
        Done { memory, registers, moved: vec![(3, 1), (2, 0)] }
    }

    fn refused(change: impl FnOnce(&mut Done)) -> String {
        let mut done = done();
        change(&mut done);
        work().check(&done, "physical").unwrap_err().message().to_owned()
    }

    #[test]
    fn messages_may_end_in_any_order_and_nothing_else_may_differ() {
        work().check(&done(), "physical").unwrap();
        assert!(refused(|d| d.memory[64] = 0).contains("aes, physical: output"));
        assert!(refused(|d| d.moved[0] = (2, 1)).contains("output"));
        assert!(refused(|d| d.moved[0] = (3, 2)).contains("message"));
        assert!(refused(|d| d.moved[0] = (200, 1)).contains("message"));
        assert!(refused(|d| d.moved.truncate(1)).contains("moves"));
        assert!(
            refused(|d| d.registers = BTreeMap::from([("errors".to_owned(), vec![7, 0, 0, 1])]))
                .contains("register")
        );
        assert!(
            refused(|d| d.registers = BTreeMap::from([("errors".to_owned(), vec![0; 4])]))
                .contains("register")
        );
    }

    #[test]
    fn all_of_a_memory_is_compared() {
        let mut work = work();
        work.expected.memory = Some(done().memory);
        work.check(&done(), "physical").unwrap();
        let mut other = done();
        other.memory[127] = 1;
        assert!(work.check(&other, "physical").unwrap_err().message().contains("memory"));
    }
}
