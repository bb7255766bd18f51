// SPDX-License-Identifier: Apache-2.0
//! Routes of an app's ports, from `--in` and `--out`.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use viaduct::{Endpoint, OutLength, SharedBytes};
use viaduct_build::{Length, Manifest, Scratch};

use crate::fail::{Result, at, regular, usage};
use crate::kept::Kept;
use crate::route::{Port, Route, Way, ports, resolve};

/// File of the memory port.
pub(super) enum MemoryFile {
    Read(PathBuf),
    Change(PathBuf),
    /// Created when the run begins.
    Copy {
        from: PathBuf,
        to: PathBuf,
    },
}

/// Many messages through the lanes of the only input.
pub(super) struct Lanes {
    pub(super) port: u8,
    pub(super) count: u16,
    /// Every output, and the length of its response to a message.
    pub(super) answers: Vec<(u8, Endpoint, u64)>,
    /// File of each message, for the golden model.
    pub(super) files: Vec<PathBuf>,
}

/// Data of an output without a route.
pub struct Message {
    /// Name of the output.
    pub output: String,
    /// The input file, if there is one per message.
    pub of: Option<String>,
    /// Hexadecimal digits.
    pub hex: String,
}

/// Routes of an app's ports.
pub struct Routes {
    pub(super) inputs: Vec<(u8, Endpoint)>,
    /// Set if the inputs are messages for one port.
    pub(super) lanes: Option<Lanes>,
    /// Names of the messages, if each comes from one file.
    pub(super) names: Vec<String>,
    pub(super) outputs: Vec<(u8, Endpoint, OutLength)>,
    pub(super) memory: Option<MemoryFile>,
    /// Output streams of messages without a route: kept here, to be printed.
    pub(super) messages: Vec<(String, SharedBytes)>,
    /// File of each input, for the golden model.
    pub(super) sources: BTreeMap<String, PathBuf>,
    /// File of each output, to be compared.
    pub(super) sinks: BTreeMap<String, PathBuf>,
    /// Content of the memory port's file before the run.
    pub(super) _before: Option<Scratch>,
    /// Copies of streamed data, for the golden model and the comparison.
    pub(super) kept: Vec<Kept>,
    /// An output goes to standard output.
    pub(super) to_standard: bool,
}

impl Routes {
    /// Evaluates `--in` and `--out`. With `check`, everything that the golden model needs is kept.
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
                    "input {name} has no route; add --in {}file:…",
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
                        "output {name} has no route; add --out {}file:…",
                        prefix(app.stream_out.len(), name)
                    ));
                }
            };
            match (&mut routes.lanes, stream.length) {
                (None, _) => routes.outputs.push((k as u8, to, length)),
                (Some(lanes), Length::Message(bytes)) => lanes.answers.push((k as u8, to, bytes)),
                (Some(_), _) => {
                    return usage(format!(
                        "output {name} does not have messages of a known length, so that its responses to several files \
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

    /// Data of outputs without a route, output by output, messages in the order of their routes.
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

    /// Whether an output goes to standard output, which is then used for nothing else.
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
}

impl Lanes {
    /// Many messages for the input with this name.
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

/// `name=`, if there are several ports.
fn prefix(ports: usize, name: &str) -> String {
    if ports > 1 { format!("{name}=") } else { String::new() }
}
