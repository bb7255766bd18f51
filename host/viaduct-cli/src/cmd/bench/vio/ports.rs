// SPDX-License-Identifier: Apache-2.0
//! What a virtual port costs an app, and what a change of its route does: this card's port and switch beside direct wiring, a fixed-port shell
//! and the published multiplexer of vFPIO, around the same apps and devices (`rtl/rivals/via_rival_vio.sv`).

use std::fmt::Write as _;
use std::path::Path;

use viaduct_build::{Image, Manifest, Project, Rivals, Scratch, Variant, run_model};

use super::super::rival::{numbers, obey};
use super::super::{Figure, size_of, wrong};
use crate::card::Opened;
use crate::cmd::bench::plot::{Form, Kind, Plot};
use crate::fail::{Failure, Result, at};
use crate::job::Values;
use crate::random::Random;

/// Systems, in the order of `system_e` of via_rival_vio.
const SYSTEMS: [&str; 4] = ["direct", "fixed", "mux", "viaduct"];
const DIRECT: usize = 0;
const MUX: usize = 2;
const OURS: usize = 3;
/// Apps with one stream each way.
const APPS: [&str; 4] = ["pass", "inc", "aes", "sha256"];
/// Seed of what is random in the program.
const SEED: u64 = 1;

/// How much is measured.
pub struct PortScale {
    /// Bytes of the messages, and of all messages of a size.
    pub messages: &'static [usize],
    pub bytes: usize,
    /// The same for an app that takes a beat in many cycles.
    pub slow: usize,
    /// Changes of routes under load: of the card, and of the multiplexer, which loses something in nearly each of them.
    pub changes: u64,
    pub mux_changes: u64,
}

/// Ports beside those of the rivals, and routes that change.
pub fn ports(
    project: &Project,
    opened: &Opened,
    scale: &PortScale,
    plots: &mut Vec<Plot>,
) -> Result<Vec<Figure>> {
    let program = project.build_rivals(Rivals::Ports, &mut crate::project::tell)?;
    let mut figures = Vec::new();
    let mut plot = Plot::new(
        "vio-ports",
        Form::Bars,
        "From a device through an app and back",
        "one message of a beat, nothing else on its way".to_owned(),
        ["app", "cycles from the first beat sent to the first received"],
    );
    for name in APPS {
        let task = Task::new(project, opened, name)?;
        for &size in scale.messages {
            let all = if name == "sha256" { scale.slow } else { scale.bytes };
            let count = (all / size).max(1);
            let ran = task.run(&program, size, count, false)?;
            figures.push(task.figure(&ran, size, count));
        }
        for (system, ran) in
            SYSTEMS.iter().zip(task.run(&program, opened.card.info().data_bytes, 1, false)?)
        {
            let kind = if *system == SYSTEMS[OURS] { Kind::Ours } else { Kind::Rival };
            plot.add(kind, system, name, 0.0, ran.latency as f64);
        }
    }
    plots.push(plot);
    figures.push(chain(project, opened, &program)?);
    figures.extend(changes(opened, &program)?);
    figures.extend(routes(&program, scale)?);
    Ok(figures)
}

/// Cycles from the first beat that was sent to the first that came back, and to the last.
#[derive(Clone, Copy)]
struct Ran {
    latency: u64,
    cycles: u64,
}

/// An app, and the registers that it needs.
struct Task<'a> {
    project: &'a Project,
    app: Manifest,
    image: Image,
    values: Values,
}

impl<'a> Task<'a> {
    fn new(project: &'a Project, opened: &Opened, name: &str) -> Result<Self> {
        let app = project.load(name)?;
        let image = crate::project::build(project, &app, opened.card.info(), Variant::Fast)?;
        let values = match name {
            "aes" => app.register_values(super::AES)?,
            _ => app.register_values([])?,
        };
        Ok(Self { project, app, image, values })
    }

    /// Sends `count` messages of `size` bytes back to back through the app, or the app in every slot, on each system that can, and compares what
    /// comes back with the golden model.
    fn run(&self, program: &Path, size: usize, count: usize, chain: bool) -> Result<Vec<Ran>> {
        let folder = Scratch::new()?;
        let [one, all] = ["one", "all"].map(|name| folder.path().join(name));
        let message = Random(size as u64).bytes(size);
        std::fs::write(&one, &message).map_err(at(one.display()))?;
        std::fs::write(&all, message.repeat(count)).map_err(at(all.display()))?;
        let slots = if chain { SLOTS } else { 1 };
        let mut expected = message;
        for _ in 0..slots {
            std::fs::write(&one, &expected).map_err(at(one.display()))?;
            let inputs = [("in".to_owned(), one.clone())].into();
            expected = run_model(self.project.root(), &self.app, &inputs, &self.values)?.bytes("out")?;
        }
        let expected = expected.repeat(count);
        let mut ran = Vec::new();
        for (number, system) in SYSTEMS.iter().enumerate() {
            if chain && number != DIRECT && number != OURS {
                continue;
            }
            let out = folder.path().join(system);
            let mut script = format!("system {number} {}\n", u8::from(chain));
            for slot in 0..slots {
                let _ = writeln!(script, "app {slot} {}", self.image.object.display());
                for (name, words) in &self.values {
                    let Some(register) = self.app.register(name) else { continue };
                    for (i, word) in words.iter().enumerate() {
                        let _ = writeln!(script, "set {slot} {} {word}", register.offset + 4 * i as u32);
                    }
                }
            }
            let _ = writeln!(script, "run {size} {count} {} {}", all.display(), out.display());
            let said = numbers(&obey(program, system, script)?, "ran")?;
            let [line] = &said[..] else { return Err(odd(system)) };
            let &[latency, cycles] = &line[..] else { return Err(odd(system)) };
            if std::fs::read(&out).map_err(at(out.display()))? != expected {
                return wrong(&format!(
                    "{count} messages of {} through {}: {system}",
                    size_of(size as u64),
                    self.app.name
                ));
            }
            ran.push(Ran { latency, cycles });
        }
        Ok(ran)
    }

    fn figure(&self, ran: &[Ran], size: usize, count: usize) -> Figure {
        let name = &self.app.name;
        let each: Vec<String> = SYSTEMS
            .iter()
            .zip(ran)
            .map(|(system, Ran { latency, cycles })| {
                format!("{system} {cycles} cycles, the first beat after {latency}")
            })
            .collect();
        Figure {
            what: format!("{count} × {} through {name} at virtual ports", size_of(size as u64)),
            value: (ran[OURS].latency - ran[DIRECT].latency) as f64,
            unit: "cycles",
            note: format!(
                "more than by wires for input and output together, {:.5} of their throughput: {}",
                ran[DIRECT].cycles as f64 / ran[OURS].cycles as f64,
                each.join("; ")
            ),
        }
    }
}

/// Slots of the program, as of a card unless its geometry is another one.
const SLOTS: usize = 4;

/// What a route from app to app adds.
fn chain(project: &Project, opened: &Opened, program: &Path) -> Result<Figure> {
    let task = Task::new(project, opened, "pass")?;
    let ran = task.run(program, opened.card.info().data_bytes, 1, true)?;
    let [direct, ours] = ran[..] else { return Err(odd("a row of apps")) };
    // A port of a device at each end, and a route between any two apps; the ports alone are in the figures of one app.
    let one = task.run(program, opened.card.info().data_bytes, 1, false)?;
    let ends = one[OURS].latency - one[DIRECT].latency;
    let between = (ours.latency - direct.latency - ends) as f64 / (SLOTS - 1) as f64;
    Ok(Figure {
        what: "a route from app to app, beside a wire".to_owned(),
        value: between,
        unit: "cycles",
        note: format!(
            "more for a beat; from a device to an app and from an app to a device {} together, through {SLOTS} apps {} instead of {}",
            ends, ours.latency, direct.latency
        ),
    })
}

/// How long a change of an idle route takes, and of one with a message on its way behind its end.
fn changes(opened: &Opened, program: &Path) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for number in [MUX, OURS] {
        let system = SYSTEMS[number];
        let said = numbers(&obey(program, system, format!("system {number} 0\nchange\n"))?, "changed")?;
        let [line] = &said[..] else { return Err(odd(system)) };
        let &[idle, busy] = &line[..] else { return Err(odd(system)) };
        // The published one asks the card whether its register has been written.
        let mut note =
            "from the write of the register at the card to the first beat by the new route".to_owned();
        if let (MUX, Some(sim)) = (number, &opened.sim) {
            let link = &sim.profile.link;
            let ns = u64::from(link.mmio_write_ns + link.mmio_read_ns);
            let _ = write!(note, "; by the host's write and its read {ns} ns more");
        }
        figures.push(Figure {
            what: format!("change of an idle route: {system}"),
            value: idle as f64,
            unit: "cycles",
            note,
        });
        let note = match number {
            MUX => "the rest of the message is lost: there is no end to wait for",
            _ => "behind the last beat of the message that was on its way",
        };
        figures.push(Figure {
            what: format!("change of a busy route: {system}"),
            value: busy as f64,
            unit: "cycles",
            note: note.to_owned(),
        });
    }
    Ok(figures)
}

/// Changes at random, while all sources send to all sinks, which do not always accept.
fn routes(program: &Path, scale: &PortScale) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for (number, changes) in [(MUX, scale.mux_changes), (OURS, scale.changes)] {
        let system = SYSTEMS[number];
        let script = format!("system {number} 0\nroutes {changes} {SEED}\n");
        let said = numbers(&obey(program, system, script)?, "routes")?;
        let [line] = &said[..] else { return Err(odd(system)) };
        let &[done, messages, dropped, lost, doubled, damaged, misrouted, idle, busy] = &line[..] else {
            return Err(odd(system));
        };
        if number == OURS && lost + doubled + damaged + misrouted != 0 {
            return wrong(&format!(
                "{done} changes of routes: {}",
                said_of(lost, doubled, damaged, misrouted)
            ));
        }
        let mut note =
            format!("of {messages} messages as they should: {}", said_of(lost, doubled, damaged, misrouted));
        if number == OURS {
            let _ = write!(
                note,
                "; {dropped} of devices came while nobody took them; a change takes at most {idle} cycles, {busy} behind the end of what was on its way"
            );
        }
        figures.push(Figure {
            what: format!("{done} changes of routes under load: {system}"),
            value: messages.saturating_sub(lost + doubled + damaged + misrouted) as f64 / messages as f64,
            unit: "",
            note,
        });
    }
    Ok(figures)
}

fn said_of(lost: u64, doubled: u64, damaged: u64, misrouted: u64) -> String {
    format!("{lost} lost, {doubled} doubled, {damaged} damaged, {misrouted} misrouted")
}

fn odd(system: &str) -> Failure {
    Failure::Run(format!("{system}: the program has not said what was expected"))
}
