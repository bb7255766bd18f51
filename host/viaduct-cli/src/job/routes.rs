// SPDX-License-Identifier: Apache-2.0
//! Routes of an app's ports, from `--in` and `--out`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use viaduct::{Endpoint, OutLength, SharedBytes};
use viaduct_build::{Length, Manifest, Scratch};

use super::memory::Memory;
use crate::fail::{Result, usage};
use crate::job::kept::Kept;
use crate::route::{Port, Route, Way, ports, resolve};

/// Many messages through the lanes of the only input.
pub(super) struct Lanes {
    pub(super) port: u8,
    pub(super) count: u16,
    /// Every output, and the length of its response to a message.
    pub(super) responses: Vec<(u8, Endpoint, u64)>,
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
#[derive(Default)]
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
    /// Those of them that belong to the user, and must stay as they are during the run.
    pub(super) watched: Vec<PathBuf>,
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
        let (ins, outs) = (resolve(app, Way::In, ins)?, resolve(app, Way::Out, outs)?);
        standard_for_one(&ins, "standard input")?;
        standard_for_one(&outs, "standard output")?;
        let mut routes = Routes::default();
        if let [(_, only)] = ins.as_slice()
            && (only.file().is_some() || only.is_standard())
        {
            routes.names.push(only.name().to_owned());
        }
        for (name, port) in ports(app, Way::In) {
            if let Port::Stream(k) = port {
                routes.input(app, (name, k as u8), &to_port(&ins, port), check)?;
            }
        }
        for (stream, (name, port)) in app.stream_out.iter().zip(ports(app, Way::Out)) {
            if let Port::Stream(k) = port {
                let to =
                    routes.destination(app, (name, stream.length), to_port(&outs, port).first(), check)?;
                routes.output((name, k as u8), stream.length, to)?;
            }
        }
        let (from, to) = (to_port(&ins, Port::Memory), to_port(&outs, Port::Memory));
        routes.memory(app, from.first().copied(), to.first().copied(), check)?;
        Ok(routes)
    }

    /// An input stream: one route, or many to lanes.
    fn input(
        &mut self,
        app: &Manifest,
        (name, port): (&str, u8),
        given: &[&Route],
        check: bool,
    ) -> Result<()> {
        match given {
            [] => usage(format!(
                "input {name} has no route; add --in {}file:…",
                prefix(app.stream_in.len(), name)
            )),
            [route] => {
                let mut from = Endpoint::parse(&route.endpoint)?;
                if check {
                    match Kept::input(route, &from)? {
                        Some((kept, through)) => {
                            self.sources.insert(name.to_owned(), kept.path());
                            self.kept.push(kept);
                            from = through;
                        }
                        None => {
                            let path = file(name, route)?;
                            self.watched.push(path.clone());
                            self.sources.insert(name.to_owned(), path);
                        }
                    }
                }
                self.inputs.push((port, from));
                Ok(())
            }
            many => {
                if many.iter().any(|route| route.is_ethernet()) {
                    return usage("eth: is for an input without other routes: its frames are the messages");
                }
                let mut lanes = Lanes::new(app, name)?;
                for route in many {
                    if check {
                        let path = file(name, route)?;
                        self.watched.push(path.clone());
                        lanes.files.push(path);
                    }
                    self.names.push(route.name().to_owned());
                    self.inputs.push((port, Endpoint::parse(&route.endpoint)?));
                }
                self.lanes = Some(lanes);
                Ok(())
            }
        }
    }

    /// Where the data of an output stream go.
    fn destination(
        &mut self,
        app: &Manifest,
        (name, length): (&str, Length),
        given: Option<&&Route>,
        check: bool,
    ) -> Result<Endpoint> {
        let Some(route) = given else {
            if !matches!(length, Length::Message(_)) {
                return usage(format!(
                    "output {name} has no route; add --out {}file:…",
                    prefix(app.stream_out.len(), name)
                ));
            }
            let bytes = SharedBytes::new(Vec::new());
            self.messages.push((name.to_owned(), bytes.clone()));
            return Ok(Endpoint::bytes(name, bytes));
        };
        let mut to = Endpoint::parse(&route.endpoint)?;
        if check {
            match Kept::output(route, &to)? {
                Some((kept, through)) => {
                    self.sinks.insert(name.to_owned(), kept.path());
                    self.kept.push(kept);
                    to = through;
                }
                None => drop(self.sinks.insert(name.to_owned(), file(name, route)?)),
            }
        }
        self.to_standard |= route.is_standard();
        Ok(to)
    }

    /// An output stream: of the run, or of the responses to messages in lanes.
    fn output(&mut self, (name, port): (&str, u8), length: Length, to: Endpoint) -> Result<()> {
        match (&mut self.lanes, length) {
            (None, Length::Same) => self.outputs.push((port, to, OutLength::Same)),
            (None, Length::Message(n)) => self.outputs.push((port, to, OutLength::Message(n))),
            (None, Length::Any) => self.outputs.push((port, to, OutLength::Any)),
            (Some(lanes), Length::Message(bytes)) => lanes.responses.push((port, to, bytes)),
            (Some(_), _) => {
                return usage(format!(
                    "output {name} does not have messages of a known length, so that its responses to several files \
                     cannot be told apart: give --in once"
                ));
            }
        }
        Ok(())
    }

    fn memory(
        &mut self,
        app: &Manifest,
        from: Option<&Route>,
        to: Option<&Route>,
        check: bool,
    ) -> Result<()> {
        let Some(port) = &app.memory else { return Ok(()) };
        let memory = Memory::new(&port.name, from, to)?;
        if check {
            let (before, after, copy) = memory.before_and_after()?;
            self._before = copy;
            let watched = from.filter(|from| !from.is_standard()).and_then(Route::file);
            self.watched.extend(watched.map(PathBuf::from));
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
                Ok(Lanes { port: 0, count: only.lanes, responses: Vec::new(), files: Vec::new() })
            }
            _ => usage(format!(
                "two routes to port {name}: that needs an app without other inputs; give --in once for each port"
            )),
        }
    }
}

/// The routes to a port.
fn to_port(list: &[(Port, Route)], port: Port) -> Vec<&Route> {
    list.iter().filter(|(p, _)| *p == port).map(|(_, route)| route).collect()
}

/// A standard stream is not given to the memory port and to another one.
fn standard_for_one(list: &[(Port, Route)], name: &str) -> Result<()> {
    let standard = |memory: bool| list.iter().any(|(p, r)| (*p == Port::Memory) == memory && r.is_standard());
    if standard(true) && standard(false) {
        return usage(format!("{name} is given to two ports; give one of them a file"));
    }
    Ok(())
}

/// The file of a route to a port.
fn file(name: &str, route: &Route) -> Result<PathBuf> {
    match route.file() {
        Some(path) => Ok(PathBuf::from(path)),
        None => usage(format!("{name}={}: this needs a file", route.endpoint)),
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
