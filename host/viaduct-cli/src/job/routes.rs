// SPDX-License-Identifier: Apache-2.0
//! Routes of an app's ports, from `--in` and `--out`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use viaduct::{Endpoint, OutLength, SharedBytes};
use viaduct_build::{Length, Manifest, Scratch};

use super::memory::Memory;
use crate::fail::{Result, usage};
use crate::kept::Kept;
use crate::route::{Port, Route, Way, ports, resolve};

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
    pub(super) memory: Option<Memory>,
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
        for (list, name) in [(&ins, "standard input"), (&outs, "standard output")] {
            let standard = |port: Port| list.iter().any(|(p, route)| *p == port && route.is_standard());
            let others = list.iter().any(|(p, route)| *p != Port::Memory && route.is_standard());
            if standard(Port::Memory) && others {
                return usage(format!("{name} is given to two ports; give one of them a file"));
            }
        }
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

    fn memory(&mut self, app: &Manifest, from: Option<Route>, to: Option<Route>, check: bool) -> Result<()> {
        let Some(port) = &app.memory else { return Ok(()) };
        let memory = Memory::new(&port.name, from.as_ref(), to.as_ref())?;
        if check {
            let (before, after, copy) = memory.before_and_after()?;
            self._before = copy;
            self.sources.insert(port.name.clone(), before);
            self.sinks.insert(port.name.clone(), after);
        }
        self.to_standard |= memory.to_standard();
        self.memory = Some(memory);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standard_input_and_output_have_one_port() {
        let ports = "[[stream_in]]\nname='in'\n[[stream_out]]\nname='out'\n[[memory]]\nname='mem'\n";
        let text = format!("[app]\nname='t'\nversion='0.1.0'\nsummary='t'\ntop='t'\n{ports}");
        let app = Manifest::parse("apps/t", &text).unwrap();
        let routes = |texts: &[&str]| texts.iter().map(|r| r.parse().unwrap()).collect::<Vec<Route>>();
        for (ins, outs, word) in [
            (["in=-", "mem=-"], ["out=file:a", "mem=file:b"], "input"),
            (["in=file:a", "mem=file:/"], ["out=-", "mem=file:/dev/stdout"], "output"),
        ] {
            let refused = Routes::new(&app, &routes(&ins), &routes(&outs), false);
            let told = refused.map(drop).unwrap_err();
            let words = format!("standard {word} is given to two ports; give one of them a file");
            assert_eq!(told.message(), words);
        }
    }
}
