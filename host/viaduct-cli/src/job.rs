// SPDX-License-Identifier: Apache-2.0
//! One run of an app: image into a slot, registers, routes, and what came of it.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use serde_json::{Value, json};
use viaduct::{
    CardInfo, Endpoint, JobReport, LaneJob, MapOptions, MemoryJob, MemoryRange, OutLength, Progress, Prot,
    SharedBytes, Slot, SlotCounters, Source, StreamJob,
};
use viaduct_build::{Access, Length, Manifest, Project, Register, Scratch};

use crate::card::{Opened, Simulated};
use crate::compare;
use crate::fail::{Failure, Result, at, regular, usage};
use crate::kept::Kept;
use crate::route::{Port, Route, Way, ports, resolve};

/// Values of registers, little-endian words.
pub type Values = BTreeMap<String, Vec<u32>>;

/// A slot with an app in it.
pub struct Loaded<'a> {
    slot: Slot,
    sim: Option<Simulated>,
    app: &'a Manifest,
}

/// Writes registers of the app in a slot.
pub fn set_registers(slot: &Slot, app: &Manifest, values: &Values) -> Result<()> {
    for register in &app.registers {
        if let Some(words) = values.get(&register.name) {
            let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
            let room = register.width.div_ceil(8) as usize;
            slot.write_wide(place(register), &bytes[..room])?;
        }
    }
    Ok(())
}

impl<'a> Loaded<'a> {
    /// Claims a slot, loads the app's image and writes registers.
    pub fn new(
        opened: &Opened,
        slot: Option<usize>,
        app: &'a Manifest,
        image: &[u8],
        values: &Values,
    ) -> Result<Self> {
        let card = &opened.card;
        let slot = match slot {
            Some(index) if index >= card.info().slots => {
                return usage(format!(
                    "there is no slot {index}: the card has slots 0 to {}",
                    card.info().slots - 1
                ));
            }
            Some(index) => card.slot(index)?,
            None => card.any_slot()?,
        };
        slot.load(image)?;
        set_registers(&slot, app, values)?;
        Ok(Loaded { slot, sim: opened.sim.clone(), app })
    }

    /// Number of the slot.
    pub fn index(&self) -> usize {
        self.slot.index()
    }

    /// Sends data through the app.
    pub fn run(&self, routes: &Routes, progress: impl FnMut(Progress) + Send) -> Result<Outcome> {
        let before = self.slot.counters()?;
        let begun = std::time::Instant::now();
        let link = |sim: &Simulated| sim.link_cycles();
        let link_before = self.sim.as_ref().map(link);
        let (mut bytes, mut cycles) = ((0, 0), 0);
        match (&routes.memory, routes.inputs.is_empty() && routes.outputs.is_empty()) {
            (None, _) => {
                let report = self.run_streams(routes, progress)?;
                (bytes, cycles) = ((report.bytes_in, report.bytes_out), report.cycles);
            }
            (Some(memory), true) => cycles = self.run_memory(memory)?,
            // Each job serves the faults of both while it waits.
            (Some(memory), false) => std::thread::scope(|scope| -> Result<()> {
                let other = scope.spawn(|| self.run_memory(memory));
                let report = self.run_streams(routes, progress);
                let ended =
                    other.join().map_err(|_| Failure::Run("the run of the memory port broke off".into()))?;
                let report = match (report, &ended) {
                    // The other job met the cause and has reset the slot.
                    (Err(error), Err(_)) if error.by_reset() => None,
                    (report, _) => Some(report?),
                };
                let memory_cycles = ended?;
                if let Some(report) = report {
                    (bytes, cycles) = ((report.bytes_in, report.bytes_out), report.cycles.max(memory_cycles));
                }
                Ok(())
            })?,
        }
        let seconds = begun.elapsed().as_secs_f64();
        let counters = since(before, self.slot.counters()?);
        let link_after = self.sim.as_ref().map(link);
        let link = link_after.zip(link_before).map(|(b, a)| (b.0 - a.0, b.1 - a.1));
        let mut registers = BTreeMap::new();
        for register in self.app.registers.iter().filter(|r| r.access == Access::Ro) {
            let value = self.slot.read_wide(place(register))?;
            let bytes = register.width.div_ceil(8) as usize;
            registers.insert(register.name.clone(), value.into_iter().take(bytes).collect());
        }
        let info = self.slot.card().info().clone();
        Ok(Outcome {
            slot: self.index(),
            bytes_in: bytes.0,
            bytes_out: bytes.1,
            cycles,
            seconds,
            counters,
            link,
            info,
            registers,
        })
    }

    fn run_streams(
        &self,
        routes: &Routes,
        progress: impl FnMut(Progress) + Send,
    ) -> viaduct::Result<JobReport> {
        if let Some(lanes) = &routes.lanes {
            let mut job = LaneJob::new(&self.slot, lanes.port, lanes.count).on_progress(progress);
            for (_, from) in &routes.inputs {
                job = job.message(from.clone());
            }
            for (port, to, bytes) in &lanes.answers {
                job = job.output(*port, to.clone(), *bytes);
            }
            return job.run();
        }
        let mut job = StreamJob::new(&self.slot).on_progress(progress);
        for (port, from) in &routes.inputs {
            job = job.input(*port, from.clone());
        }
        for (port, to, length) in &routes.outputs {
            job = job.output(*port, to.clone(), *length);
        }
        job.run()
    }

    /// Maps the file, lets the app work on it, and returns the cycles that took.
    fn run_memory(&self, file: &MemoryFile) -> Result<u64> {
        let register = |name: &Option<String>| name.as_ref().and_then(|n| self.app.register(n));
        let Some(port) = &self.app.memory else {
            return usage(format!("app {} has no memory port", self.app.name));
        };
        let (Some(base), Some(start)) = (register(&port.base), register(&port.start)) else {
            return usage(format!(
                "app {}: its manifest names no registers for base and start of {}, so that only a program can run it",
                self.app.name, port.name
            ));
        };
        let (source, prot) = match file {
            MemoryFile::Read(path) => (Source::file(path)?, Prot::READ),
            MemoryFile::Change(path) => (Source::file_mut(path)?, Prot::READ_WRITE),
            MemoryFile::Copy { from, to } => {
                std::fs::copy(from, to).map_err(at(format!("{} to {}", from.display(), to.display())))?;
                (Source::file_mut(to)?, Prot::READ_WRITE)
            }
        };
        let len = source.len();
        let mapping = self.slot.map(source, len, MapOptions::new(prot))?;
        let range = MemoryRange::of(&mapping, place(base), register(&port.bytes).map(place));
        let mut job = MemoryJob::new(&self.slot, start.offset).range(range);
        if let Some(done) = register(&port.done) {
            job = job.done(done.offset);
        }
        let report = job.run()?;
        mapping.unmap()?;
        match report.denied {
            0 => Ok(report.cycles),
            n => Err(Failure::Run(format!(
                "{n} accesses of the app were outside the file, or writes to one given with --in only"
            ))),
        }
    }
}

fn place(register: &Register) -> viaduct::Register {
    viaduct::Register { offset: register.offset, width: register.width }
}

fn since(a: SlotCounters, b: SlotCounters) -> SlotCounters {
    SlotCounters {
        rd_trans: b.rd_trans.wrapping_sub(a.rd_trans),
        wr_trans: b.wr_trans.wrapping_sub(a.wr_trans),
        rd_miss: b.rd_miss.wrapping_sub(a.rd_miss),
        wr_miss: b.wr_miss.wrapping_sub(a.wr_miss),
        beats_in: b.beats_in.wrapping_sub(a.beats_in),
        beats_out: b.beats_out.wrapping_sub(a.beats_out),
        rd_beats: b.rd_beats.wrapping_sub(a.rd_beats),
        wr_beats: b.wr_beats.wrapping_sub(a.wr_beats),
    }
}

/// What the memory port works on.
enum MemoryFile {
    Read(PathBuf),
    Change(PathBuf),
    /// It is made when the run begins.
    Copy {
        from: PathBuf,
        to: PathBuf,
    },
}

/// Many messages through the lanes of the only input.
struct Lanes {
    port: u8,
    count: u16,
    /// Every output, and the bytes of its answer to a message.
    answers: Vec<(u8, Endpoint, u64)>,
    /// File of each message, for the golden model.
    files: Vec<PathBuf>,
}

/// What came on an output that nobody routed.
pub struct Message {
    /// Name of the output.
    pub output: String,
    /// What it answers, if that is one file.
    pub of: Option<String>,
    /// Hexadecimal digits.
    pub hex: String,
}

/// Where each port of an app leads.
pub struct Routes {
    inputs: Vec<(u8, Endpoint)>,
    /// Set if the inputs are messages for one port.
    lanes: Option<Lanes>,
    /// Names of the messages, if each comes from one file.
    names: Vec<String>,
    outputs: Vec<(u8, Endpoint, OutLength)>,
    memory: Option<MemoryFile>,
    /// Output streams of messages that nobody routed: kept here, to be printed.
    messages: Vec<(String, SharedBytes)>,
    /// File of each input, for the golden model.
    sources: BTreeMap<String, PathBuf>,
    /// File of each output, to be compared.
    sinks: BTreeMap<String, PathBuf>,
    /// Content of the memory port's file before the run.
    _before: Option<Scratch>,
    /// What went through streams, for the golden model and to be compared.
    kept: Vec<Kept>,
    /// An output goes to standard output.
    to_standard: bool,
}

impl Routes {
    /// Works out `--in` and `--out`. With `check`, all that the golden model needs is kept.
    pub fn new(app: &Manifest, ins: &[Route], outs: &[Route], check: bool) -> Result<Routes> {
        let mut routes = Routes {
            inputs: Vec::new(),
            lanes: None,
            names: Vec::new(),
            outputs: Vec::new(),
            memory: None,
            messages: Vec::new(),
            sources: BTreeMap::new(),
            sinks: BTreeMap::new(),
            _before: None,
            kept: Vec::new(),
            to_standard: false,
        };
        let (ins, outs) = (resolve(app, Way::In, ins)?, resolve(app, Way::Out, outs)?);
        let find = |list: &[(Port, Route)], port: Port| {
            list.iter().find(|(p, _)| *p == port).map(|(_, r)| r.clone())
        };
        let file = |name: &str, route: &Route| match route.file() {
            Some(path) => Ok(PathBuf::from(path)),
            None => usage(format!("{name}={}: this needs a file", route.endpoint)),
        };
        if let [(_, only)] = ins.as_slice() {
            routes
                .names
                .extend((only.file().is_some() || only.is_standard()).then(|| only.name().to_owned()));
        }
        for (name, port) in ports(app, Way::In) {
            let Port::Stream(k) = port else { continue };
            let Some(route) = find(&ins, port) else {
                return usage(format!(
                    "input {name} gets nothing; add --in {}file:…",
                    prefix(app.stream_in.len(), name)
                ));
            };
            let many: Vec<&Route> = ins.iter().filter(|(p, _)| *p == port).map(|(_, route)| route).collect();
            if many.len() > 1 {
                routes.lanes = Some(Lanes::new(app, name)?);
                for route in many {
                    if let (true, Some(lanes)) = (check, &mut routes.lanes) {
                        lanes.files.push(file(name, route)?);
                    }
                    routes.names.push(route.name().to_owned());
                    routes.inputs.push((k as u8, Endpoint::parse(&route.endpoint)?));
                }
                continue;
            }
            let mut from = Endpoint::parse(&route.endpoint)?;
            if check {
                match Kept::input(&route, &from)? {
                    Some((kept, through)) => {
                        routes.sources.insert(name.to_owned(), kept.path());
                        routes.kept.push(kept);
                        from = through;
                    }
                    None => drop(routes.sources.insert(name.to_owned(), file(name, &route)?)),
                }
            }
            routes.inputs.push((k as u8, from));
        }
        for (stream, (name, port)) in app.stream_out.iter().zip(ports(app, Way::Out)) {
            let Port::Stream(k) = port else { continue };
            let length = match stream.length {
                Length::Same => OutLength::Same,
                Length::Message(n) => OutLength::Message(n),
                Length::Any => OutLength::Any,
            };
            let to = match (find(&outs, port), stream.length) {
                (Some(route), _) => {
                    let mut to = Endpoint::parse(&route.endpoint)?;
                    if check {
                        match Kept::output(&route)? {
                            Some((kept, through)) => {
                                routes.sinks.insert(name.to_owned(), kept.path());
                                routes.kept.push(kept);
                                to = through;
                            }
                            None => drop(routes.sinks.insert(name.to_owned(), file(name, &route)?)),
                        }
                    }
                    routes.to_standard |= route.is_standard();
                    to
                }
                (None, Length::Message(_)) => {
                    let bytes = SharedBytes::new(Vec::new());
                    routes.messages.push((name.to_owned(), bytes.clone()));
                    Endpoint::bytes(name, bytes)
                }
                (None, _) => {
                    return usage(format!(
                        "output {name} goes nowhere; add --out {}file:…",
                        prefix(app.stream_out.len(), name)
                    ));
                }
            };
            match (&mut routes.lanes, stream.length) {
                (None, _) => routes.outputs.push((k as u8, to, length)),
                (Some(lanes), Length::Message(bytes)) => lanes.answers.push((k as u8, to, bytes)),
                (Some(_), _) => {
                    return usage(format!(
                        "output {name} does not give messages of a known length, so that its answers to several files \
                         cannot be told apart: give --in once"
                    ));
                }
            }
        }
        routes.memory(app, find(&ins, Port::Memory), find(&outs, Port::Memory), check)?;
        Ok(routes)
    }

    /// `--in` alone: the app may read the file. `--out` alone: it changes the file. Both: it changes a copy.
    fn memory(&mut self, app: &Manifest, from: Option<Route>, to: Option<Route>, check: bool) -> Result<()> {
        let Some(port) = &app.memory else { return Ok(()) };
        let name = &port.name;
        let path = |route: &Route| match route.file() {
            Some(path) => Ok(PathBuf::from(path)),
            None => usage(format!("{name}={}: a memory port works on a file", route.endpoint)),
        };
        let file = match (from, to) {
            (None, None) => {
                return usage(format!(
                    "memory port {name} has no file; add --in {name}=file:… or --out {name}=file:…"
                ));
            }
            (Some(from), None) => MemoryFile::Read(path(&from)?),
            (None, Some(to)) => MemoryFile::Change(path(&to)?),
            (Some(from), Some(to)) => {
                let (from, to) = (path(&from)?, path(&to)?);
                if to.exists() {
                    regular(&to)?;
                }
                let file = |path: &PathBuf| std::fs::metadata(path).map(|meta| (meta.dev(), meta.ino())).ok();
                if file(&from).is_some() && file(&from) == file(&to) {
                    return usage(format!(
                        "{}: is both read and written; give --out alone to change it in place",
                        to.display()
                    ));
                }
                MemoryFile::Copy { from, to }
            }
        };
        let (MemoryFile::Read(first) | MemoryFile::Change(first) | MemoryFile::Copy { from: first, .. }) =
            &file;
        regular(first)?;
        if check {
            let (before, after) = match &file {
                MemoryFile::Read(path) => (path.clone(), path),
                MemoryFile::Copy { from, to } => (from.clone(), to),
                MemoryFile::Change(path) => {
                    let scratch = Scratch::new()?;
                    let copy = scratch.path().join("before");
                    std::fs::copy(path, &copy)
                        .map_err(at(format!("copying {} for --check", path.display())))?;
                    self._before = Some(scratch);
                    (copy, path)
                }
            };
            self.sources.insert(name.clone(), before);
            self.sinks.insert(name.clone(), after.clone());
        }
        self.memory = Some(file);
        Ok(())
    }

    /// What came on outputs that were not routed, output by output, messages in the order of their routes.
    pub fn messages(&self) -> Vec<Message> {
        let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect();
        let mut messages = Vec::new();
        for (output, bytes) in &self.messages {
            let bytes = bytes.to_vec();
            let parts = self.names.len().max(1);
            for (k, part) in bytes.chunks((bytes.len() / parts).max(1)).enumerate() {
                let (output, of) = (output.clone(), self.names.get(k).cloned());
                messages.push(Message { output, of, hex: hex(part) });
            }
        }
        messages
    }

    /// Whether an output goes to standard output: nothing else may.
    pub fn to_standard(&self) -> bool {
        self.to_standard
    }

    /// Whether there are outputs to be printed.
    pub fn prints(&self) -> bool {
        !self.messages.is_empty()
    }

    /// Whether the run sends many messages through lanes.
    pub fn in_lanes(&self) -> bool {
        self.lanes.is_some()
    }

    /// Runs the golden model and compares every output, and those registers it says something about: bytes compared, or
    /// where the first difference lies.
    pub fn check(
        &self,
        project: &Project,
        app: &Manifest,
        values: &Values,
        outcome: &Outcome,
    ) -> Result<std::result::Result<u64, String>> {
        if let Some(lanes) = &self.lanes {
            return self.check_lanes(lanes, project, app, values);
        }
        let expected = viaduct_build::run_model(project.root(), app, &self.sources, values)?;
        let model = |problem: String| {
            Err(Failure::Run(format!("the golden model of {} returned {problem}", app.name)))
        };
        let mut same = 0;
        let mut missing: Vec<&str> = app.stream_out.iter().map(|s| s.name.as_str()).collect();
        missing.extend(app.memory.iter().map(|m| m.name.as_str()));
        let captured = Scratch::new()?;
        let spill = |name: &str, bytes: &[u8]| {
            let path = captured.path().join(name);
            std::fs::write(&path, bytes).map_err(at(path.display())).map(|()| path)
        };
        for name in expected.names() {
            missing.retain(|m| *m != name);
            let message = self.messages.iter().find(|(n, _)| n == name).map(|(_, bytes)| bytes.to_vec());
            let got = match (message, self.sinks.get(name), outcome.registers.get(name)) {
                (_, Some(path), _) => path.clone(),
                (Some(bytes), ..) => spill(name, &bytes)?,
                (.., Some(bytes)) => spill(name, bytes)?,
                _ => return model(format!("{name:?}, which is neither an output nor a read-only register")),
            };
            let Some(expected) = expected.file(name) else { continue };
            match compare::files(&got, expected)? {
                Ok(bytes) => same += bytes,
                Err(difference) => return Ok(Err(format!("{name}: {difference}"))),
            }
        }
        match missing.first() {
            Some(name) => model(format!("nothing for {name}")),
            None => Ok(Ok(same)),
        }
    }

    /// Runs the golden model on each message and compares the answers to it.
    fn check_lanes(
        &self,
        lanes: &Lanes,
        project: &Project,
        app: &Manifest,
        values: &Values,
    ) -> Result<std::result::Result<u64, String>> {
        let mut same = 0;
        let captured = Scratch::new()?;
        let captured = captured.path().join("answer");
        let mut outputs = Vec::new();
        for (stream, (.., length)) in app.stream_out.iter().zip(&lanes.answers) {
            let bytes = match self.sinks.get(&stream.name) {
                Some(path) => std::fs::read(path).map_err(at(path.display()))?,
                None => self
                    .messages
                    .iter()
                    .find(|(name, _)| *name == stream.name)
                    .map_or_else(Vec::new, |(_, bytes)| bytes.to_vec()),
            };
            outputs.push((&stream.name, bytes, *length as usize));
        }
        for (k, path) in lanes.files.iter().enumerate() {
            let inputs = app.stream_in.iter().map(|stream| (stream.name.clone(), path.clone())).collect();
            let expected = viaduct_build::run_model(project.root(), app, &inputs, values)?;
            for (name, bytes, length) in &outputs {
                let Some(expected) = expected.file(name) else {
                    let app = &app.name;
                    return Err(Failure::Run(format!(
                        "the golden model of {app} returned nothing for {name}"
                    )));
                };
                let answer = bytes.get(k * length..(k + 1) * length).unwrap_or_default();
                std::fs::write(&captured, answer).map_err(at(captured.display()))?;
                match compare::files(&captured, expected)? {
                    Ok(bytes) => same += bytes,
                    Err(difference) => return Ok(Err(format!("{}: {name}: {difference}", path.display()))),
                }
            }
        }
        Ok(Ok(same))
    }
}

impl Lanes {
    /// Many messages for the input of that name.
    fn new(app: &Manifest, name: &str) -> Result<Lanes> {
        match app.stream_in.as_slice() {
            [only] if app.memory.is_none() => {
                Ok(Lanes { port: 0, count: only.lanes, answers: Vec::new(), files: Vec::new() })
            }
            _ => usage(format!(
                "two routes to port {name}: that needs an app without other inputs; give --in once for each port"
            )),
        }
    }
}

/// Little-endian bytes as a hexadecimal number.
pub fn number(bytes: &[u8]) -> String {
    let hex: String = bytes.iter().rev().map(|b| format!("{b:02x}")).collect();
    let digits = hex.trim_start_matches('0');
    format!("0x{}", if digits.is_empty() { "0" } else { digits })
}

/// `name=`, where a port must be told from others.
fn prefix(ports: usize, name: &str) -> String {
    if ports > 1 { format!("{name}=") } else { String::new() }
}

/// What a run did.
pub struct Outcome {
    /// Number of the slot.
    pub slot: usize,
    /// Bytes the app took.
    pub bytes_in: u64,
    /// Bytes the app gave.
    pub bytes_out: u64,
    /// Card time.
    pub cycles: u64,
    /// Time of this machine.
    pub seconds: f64,
    /// What the slot counted meanwhile.
    pub counters: SlotCounters,
    /// Cycles that the link was busy towards the card and from it, if known.
    pub link: Option<(f64, f64)>,
    /// The card.
    pub info: CardInfo,
    /// Registers the app drives, after the run: little-endian bytes.
    pub registers: BTreeMap<String, Vec<u8>>,
}

impl Outcome {
    /// Bytes through the app: of the side that had more, or of its memory port.
    pub fn bytes(&self) -> u64 {
        let memory =
            u64::from(self.counters.rd_beats.max(self.counters.wr_beats)) * self.info.data_bytes as u64;
        match self.bytes_in.max(self.bytes_out) {
            0 => memory,
            bytes => bytes,
        }
    }

    /// Bytes a cycle.
    pub fn rate(&self) -> f64 {
        if self.cycles == 0 { 0.0 } else { self.bytes() as f64 / self.cycles as f64 }
    }

    /// GB/s at the card's nominal clock.
    pub fn gb_per_s(&self) -> f64 {
        self.rate() * f64::from(self.info.clock_khz) * 1e3 / 1e9
    }

    /// Share of the cycles in which each part moved data, the busiest first.
    pub fn busy(&self) -> Vec<(&'static str, f64)> {
        let c = &self.counters;
        let share = |beats: u32| if self.cycles == 0 { 0.0 } else { f64::from(beats) / self.cycles as f64 };
        let link = self
            .link
            .filter(|_| self.cycles > 0)
            .map_or((0.0, 0.0), |l| (l.0 / self.cycles as f64, l.1 / self.cycles as f64));
        let mut parts = vec![
            ("link to the card", link.0.min(1.0)),
            ("link from the card", link.1.min(1.0)),
            ("input stream", share(c.beats_in)),
            ("output stream", share(c.beats_out)),
            ("memory port, reading", share(c.rd_beats)),
            ("memory port, writing", share(c.wr_beats)),
        ];
        parts.retain(|(_, share)| *share > 0.0);
        parts.sort_by(|a, b| b.1.total_cmp(&a.1));
        parts
    }

    /// Everything, for programs.
    pub fn json(&self) -> Value {
        json!({
            "slot": self.slot,
            "bytes_in": self.bytes_in,
            "bytes_out": self.bytes_out,
            "cycles": self.cycles,
            "bytes_per_cycle": self.rate(),
            "clock_khz": self.info.clock_khz,
            "gb_per_s": self.gb_per_s(),
            "busy": self.busy().into_iter().map(|(part, share)| (part.to_owned(), json!(share))).collect::<serde_json::Map<_, _>>(),
            "misses": u64::from(self.counters.rd_miss) + u64::from(self.counters.wr_miss),
            "registers": self.registers.iter().map(|(name, value)| (name.clone(), json!(number(value)))).collect::<serde_json::Map<_, _>>(),
        })
    }
}
