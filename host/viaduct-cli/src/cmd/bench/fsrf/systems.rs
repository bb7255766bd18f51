// SPDX-License-Identifier: Apache-2.0
//! The systems of Table 2 of the FSRF paper, and how the program with all but ours (`sim/rivals`) is told to run one.

use std::fmt::Write as _;
use std::iter::Peekable;
use std::path::{Path, PathBuf};
use std::str::Lines;

use viaduct_build::{Register, Scratch};
use viaduct_sim::Profile;

use super::paging::{Case, Paging};
use super::work::{Done, Ran, Registers, Task, Work};
use crate::cmd::bench::rival::obey;
use crate::fail::{Failure, Result, at};

/// Where the data of a slot begins in the address spaces of the other systems (`BaseLog2` of via_rival).
const BASE: u64 = 1 << 33;

/// Parameters of a system, as the inputs of `rtl/rivals/via_rival.sv`.
#[derive(Clone, Copy)]
pub struct System {
    pub name: &'static str,
    direct: bool,
    striped: bool,
    split: bool,
    walk: bool,
    tlb: Option<Tlb>,
    loads: Loads,
}

/// What a fault loads (paper, 6.2; artifact).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Loads {
    /// All is resident, always.
    Nothing,
    /// 2 MiB while frames are free, then 4 KiB, and twice as much as before while faults are in order.
    Growing,
    Small,
    Huge,
    /// All of a segment: it is never larger than card memory.
    Segment,
}

/// A TLB in SRAM. Its reach is divided by `scale`.
#[derive(Clone, Copy)]
struct Tlb {
    step: u32,
    page_log2: u32,
    sets_log2: u32,
    ways: u32,
}

/// Cycles of the state machine of the SRAM TLBs, which serves reads and writes in turn. From the published artifact; the paper says that it
/// is one (5.2), that Coyote's replica has its latency (6.2), and its rows `rng`, 9,800 MiB/s in four slots with accesses of 64 bytes, are 6.2
/// cycles each.
const MACHINE: u32 = 6;
/// Cycles until the host has entered a page into a TLB; no data is moved. What `viaduct bench mem` shows for a card whose host takes no
/// time was 600 when misses were served one by one; the paper's rows `gups` of Coyote, a miss in 4.95 microseconds, are 1,240.
const MISS: u32 = 600;

/// Coyote's TLBs, which the paper gives FSRF too (6.2): 4 ways and 1024 sets of 4 KiB, 2 ways and 64 sets of 2 MiB.
const SMALL: Tlb = Tlb { step: MACHINE, page_log2: 12, sets_log2: 10, ways: 4 };
const HUGE: Tlb = Tlb { step: MACHINE, page_log2: 21, sets_log2: 6, ways: 2 };
/// Four segments of 4 GiB each way of a TLB (artifact): never a miss here.
const SEGMENTS: Tlb = Tlb { step: MACHINE, page_log2: 32, sets_log2: 2, ways: 4 };

const PLAIN: System = System {
    name: "physical",
    direct: false,
    striped: false,
    split: false,
    walk: false,
    tlb: None,
    loads: Loads::Nothing,
};

/// All but ours. With `+` a translation takes one cycle and there is one a cycle and direction, so that no win rests on a slow machine.
pub const SYSTEMS: [System; 10] = [
    PLAIN,
    System { name: "direct", direct: true, ..PLAIN },
    System { name: "fsrf-sram", tlb: Some(HUGE), loads: Loads::Growing, ..PLAIN },
    System { name: "fsrf-dram", walk: true, loads: Loads::Growing, ..PLAIN },
    System { name: "coyote-4k", striped: true, tlb: Some(SMALL), loads: Loads::Small, ..PLAIN },
    System { name: "coyote-2m", striped: true, tlb: Some(HUGE), loads: Loads::Huge, ..PLAIN },
    System {
        name: "amorphos",
        striped: true,
        split: true,
        tlb: Some(SEGMENTS),
        loads: Loads::Segment,
        ..PLAIN
    },
    System {
        name: "coyote-4k+",
        striped: true,
        tlb: Some(Tlb { step: 0, ..SMALL }),
        loads: Loads::Small,
        ..PLAIN
    },
    System {
        name: "coyote-2m+",
        striped: true,
        tlb: Some(Tlb { step: 0, ..HUGE }),
        loads: Loads::Huge,
        ..PLAIN
    },
    System {
        name: "amorphos+",
        striped: true,
        split: true,
        tlb: Some(Tlb { step: 0, ..SEGMENTS }),
        loads: Loads::Segment,
        ..PLAIN
    },
];

/// Pages of 4 KiB in one of 2 MiB, log2.
const HUGE_LOG2: u32 = 9;

impl System {
    /// Whether its host chooses how much a fault loads.
    pub fn grows(&self) -> bool {
        self.loads == Loads::Growing
    }

    /// Whether the memory of a slot is in all channels.
    pub fn striped(&self) -> bool {
        self.striped
    }

    /// Pages of 4 KiB that a fault loads: at least, at most. None if there are no faults. A page of 2 MiB is smaller as the data is. `batch`:
    /// what the host chooses, if it does, instead of its policy.
    pub fn pages(&self, case: Case, scale_log2: u32, batch: Option<u64>) -> Option<(u64, u64)> {
        let huge = 1 << HUGE_LOG2.saturating_sub(scale_log2);
        match (case, self.loads) {
            (Case::Hot, _) | (_, Loads::Nothing) | (Case::Over, Loads::Segment) => None,
            (_, Loads::Growing) => Some(batch.map_or((1, huge), |pages| (pages, pages))),
            (_, Loads::Small) => Some((1, 1)),
            (_, Loads::Huge) => Some((huge, huge)),
            (_, Loads::Segment) => Some((u64::from(u32::MAX), u64::from(u32::MAX))),
        }
    }

    /// The line of the program's input. `scale_log2`: how much smaller the data is than the paper's, and with it the reach of TLBs.
    fn line(&self, scale_log2: u32) -> String {
        let tlb = self.tlb.unwrap_or(HUGE);
        let sets = tlb.sets_log2.saturating_sub(if tlb.page_log2 < 32 { scale_log2 } else { 0 });
        let flags = [self.direct, self.striped, self.split, self.walk, self.tlb.is_some()];
        let flags: Vec<String> = flags.iter().map(|f| u8::from(*f).to_string()).collect();
        let Tlb { step, page_log2, ways, .. } = tlb;
        format!("system {} {step} {page_log2} {sets} {ways} {MISS}\n", flags.join(" "))
    }

    /// Runs tasks, each in a slot. What is counted of each ends with it, or with `first` when the first one ends.
    pub fn run(
        &self,
        program: &Path,
        profile: &Profile,
        tasks: &[&Task],
        scale_log2: u32,
        paging: Option<Paging>,
        first: bool,
    ) -> Result<Vec<Ran>> {
        let folder = Scratch::new()?;
        let folder = folder.path();
        let script = self.script(folder, profile, tasks, scale_log2, paging, first)?;
        let said = obey(program, self.name, script)?;
        let mut response = Response { system: self.name, lines: said.lines().peekable() };
        let counted = tasks.iter().map(|_| response.slot()).collect::<Result<Vec<_>>>()?;
        let mut all = Vec::new();
        for (s, (task, (ran, moved))) in tasks.iter().zip(counted).enumerate() {
            let registers = response.registers(&task.work)?;
            let file = after(folder, s);
            let memory = std::fs::read(&file).map_err(at(file.display()))?;
            task.work.check(&Done { memory, registers, moved }, self.name)?;
            all.push(ran);
        }
        Ok(all)
    }

    /// The program's input: what the card is, what each slot does, and what is to be told of it afterwards. Files are in a folder.
    fn script(
        &self,
        folder: &Path,
        profile: &Profile,
        tasks: &[&Task],
        scale_log2: u32,
        paging: Option<Paging>,
        first: bool,
    ) -> Result<String> {
        let mut text = format!("clock {}\ndram", profile.clk_khz);
        for word in profile.dram.words() {
            let _ = write!(text, " {word}");
        }
        text.push('\n');
        // Once there are fewer frames than pages, FSRF's TLB in SRAM holds small ones.
        let small = paging.as_ref().is_some_and(|p| p.resident) && self.loads == Loads::Growing;
        let system = if small && self.tlb.is_some() { Self { tlb: Some(SMALL), ..*self } } else { *self };
        text += &system.line(scale_log2);
        if let Some(paging) = &paging {
            text += &paging.line();
        }
        for (s, task) in tasks.iter().enumerate() {
            let memory = folder.join(format!("memory{s}"));
            std::fs::write(&memory, &task.work.memory).map_err(at(memory.display()))?;
            text += &begin(s, task, &memory)?;
        }
        let _ = writeln!(text, "go {}", u8::from(first));
        for (s, task) in tasks.iter().enumerate() {
            text += &end(s, &task.work, &after(folder, s))?;
        }
        Ok(text)
    }
}

/// The lines of the program's input that load a slot's app and memory, set its registers and list its moves.
fn begin(s: usize, Task { work, image, .. }: &Task, memory: &Path) -> Result<String> {
    let (stream, bytes) = (u8::from(work.streams()), work.memory.len() as u64);
    let mut values = work.values.clone();
    let mut start = 0;
    if let Some(port) = &work.app.memory {
        start = register(work, port.start.as_deref().unwrap_or("start"))?.offset;
        for (name, value) in [(&port.base, BASE), (&port.bytes, bytes)] {
            if let Some(name) = name {
                values.insert(name.clone(), vec![value as u32, (value >> 32) as u32]);
            }
        }
    }
    let (object, memory) = (image.object.display(), memory.display());
    let mut text = format!("app {s} {object} {stream} {bytes} {memory} {start}\n");
    for (name, words) in &values {
        let offset = register(work, name)?.offset;
        for (i, word) in words.iter().enumerate() {
            let _ = writeln!(text, "set {s} {} {word}", offset + 4 * i as u32);
        }
    }
    for m in &work.ins {
        let _ = writeln!(text, "in {s} {} {} {} {}", m.id, m.at, m.bytes, u8::from(m.last));
    }
    for (at, bytes) in &work.outs {
        let _ = writeln!(text, "out {s} {at} {bytes}");
    }
    Ok(text)
}

/// The lines of the program's input that ask for a slot's results, and for its memory in a file.
fn end(s: usize, work: &Work, memory: &Path) -> Result<String> {
    let mut text = String::new();
    for name in work.results() {
        let r = register(work, &name)?;
        for i in 0..r.words() {
            let _ = writeln!(text, "get {s} {}", r.offset + 4 * i);
        }
    }
    let _ = writeln!(text, "save {s} {}", memory.display());
    Ok(text)
}

/// The file of a slot's memory after the run.
fn after(folder: &Path, s: usize) -> PathBuf {
    folder.join(format!("after{s}"))
}

/// What the program has printed, line by line: a word, and numbers.
struct Response<'a> {
    system: &'static str,
    lines: Peekable<Lines<'a>>,
}

impl Response<'_> {
    fn odd(&self) -> Failure {
        Failure::Run(format!("{} has not said what was expected", self.system))
    }

    /// The numbers of the next line, if it begins with `word`.
    fn next(&mut self, word: &str) -> Result<Option<Vec<u64>>> {
        let Some(line) = self.lines.next_if(|line| line.split(' ').next() == Some(word)) else {
            return Ok(None);
        };
        let numbers = line.split(' ').skip(1).map(str::parse).collect::<std::result::Result<_, _>>();
        numbers.map(Some).map_err(|_| self.odd())
    }

    /// What was counted of a slot, and the bytes and id of each of its moves out.
    fn slot(&mut self) -> Result<(Ran, Vec<(u32, u8)>)> {
        let ran = self.next("ran")?;
        let Some(&[first, last, beats_in, beats_out, misses]) = ran.as_deref() else {
            return Err(self.odd());
        };
        let (loads, stores) = match self.next("paged")?.as_deref() {
            None => (0, 0),
            Some(&[_, loads, stores]) => (loads, stores),
            Some(_) => return Err(self.odd()),
        };
        let mut moved = Vec::new();
        while let Some(numbers) = self.next("out")? {
            let [bytes, id] = numbers[..] else { return Err(self.odd()) };
            moved.push((bytes as u32, id as u8));
        }
        let cycles = last - first + 1;
        Ok((Ran { cycles, beats_in, beats_out, misses, loads, stores, overflowed: 0 }, moved))
    }

    /// The registers with the results of a slot.
    fn registers(&mut self, work: &Work) -> Result<Registers> {
        let mut registers = Registers::new();
        for name in work.results() {
            let mut value = Vec::new();
            for _ in 0..register(work, &name)?.words() {
                let word = self.next("register")?;
                let Some(&[word]) = word.as_deref() else { return Err(self.odd()) };
                value.extend((word as u32).to_le_bytes());
            }
            registers.insert(name, value);
        }
        Ok(registers)
    }
}

fn register<'a>(work: &'a Work, name: &str) -> Result<&'a Register> {
    let missing = || Failure::Run(format!("app {} has no register {name}", work.app.name));
    work.app.register(name).ok_or_else(missing)
}
