// SPDX-License-Identifier: Apache-2.0
//! `viaduct bench vio`: streams between apps on the card, ports beside those of other systems, apps that share the link,
//! frames through the Ethernet port, and what the paper on the system-level driver measures.

mod driver;
mod ethernet;
mod narrow;
mod ports;
mod schedulers;
mod tenants;

use viaduct::desc::Status;
use viaduct::{Endpoint, OutLength, SharedBytes, Slot, StreamJob, Tag};
use viaduct_build::Project;

pub use self::driver::DriverScale;
pub use self::ethernet::EthernetScale;
pub use self::narrow::NarrowScale;
pub use self::ports::PortScale;
pub use self::schedulers::SchedulerScale;
use super::{Figure, image, size_of, wrong};
use crate::card::{CardArgs, Opened};
use crate::cmd::bench::plot::{Form, Kind, Plot};
use crate::fail::Result;
use crate::random::Random;

/// The app that passes on what it gets, a beat a cycle.
const APP: &str = "pass";

/// Key and first counter block of `aes`.
const AES: [(&str, &str); 2] = [
    ("key", "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"),
    ("iv", "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff"),
];

/// Waits for commands; `what` is in the error if one of them has failed.
fn wait(slot: &Slot, submitted: &[Tag], what: &str) -> Result {
    match slot.wait(submitted)?.iter().all(|completion| completion.status == Status::Ok) {
        true => Ok(()),
        false => wrong(what),
    }
}

/// How much is measured.
pub struct VioScale {
    /// Sizes of the messages that are sent through apps in sequence.
    pub messages: &'static [usize],
    /// Messages of each app that shares the link.
    pub each: u64,
    /// The same of each of up to eight, on a card of their own, if it is built.
    pub many: Option<u64>,
    /// Sizes of transfers on a link of the driver paper's shape.
    pub narrow: NarrowScale,
    /// Ports beside those of other systems.
    pub ports: PortScale,
    /// Schedulers beside that of vFPIO.
    pub schedulers: SchedulerScale,
    /// Frames of Ethernet.
    pub ethernet: EthernetScale,
    /// What the paper on the system-level driver has.
    pub driver: DriverScale,
}

/// Messages through one to four apps in sequence: on the card, and by host memory between any two, as without routes.
pub fn vio(
    project: &Project,
    card: &CardArgs,
    opened: &Opened,
    scale: &VioScale,
    plots: &mut Vec<Plot>,
) -> Result<Vec<Figure>> {
    let app = project.load(APP)?;
    let image = image(project, opened, &app)?;
    let slots = (0..opened.card.info().slots)
        .map(|index| {
            let slot = opened.card.slot(index)?;
            slot.load(&image)?;
            Ok(slot)
        })
        .collect::<viaduct::Result<Vec<Slot>>>()?;
    let mut random = Random(5);
    let mut figures = Vec::new();
    for &size in scale.messages {
        let data = random.bytes(size);
        let mut plot = Plot::new(
            format!("vio-{size}"),
            Form::Bars,
            format!("A message of {} through apps in sequence", size_of(size as u64)),
            "from and to host memory; each app passes on a beat a cycle".to_owned(),
            ["apps", "cycles"],
        );
        // Once, so that nothing is used for the first time below.
        message(&slots.iter().collect::<Vec<_>>(), &data)?;
        let mut two = 0;
        for apps in 1..=slots.len() {
            let line: Vec<&Slot> = slots[..apps].iter().collect();
            let routed = message(&line, &data)?;
            let mut by_host = 0;
            for slot in &line {
                by_host += message(&[*slot], &data)?;
            }
            if apps == 2 {
                two = routed;
            }
            plot.add(Kind::Ours, "on the card", &apps.to_string(), 0.0, routed as f64);
            plot.add(Kind::Rival, "by host memory", &apps.to_string(), 0.0, by_host as f64);
            // One app gets the commands for input and output by one ring, two by a ring each: what an app adds is seen from the third on.
            let added = match apps {
                0..=2 => String::new(),
                _ => format!(
                    ", {:+.1} for each app behind the second",
                    (routed as f64 - two as f64) / (apps - 2) as f64
                ),
            };
            let times = by_host as f64 / routed as f64;
            let more = match apps {
                1 => String::new(),
                _ => format!("{added}; by host memory {by_host}, {times:.2} times as many"),
            };
            figures.push(Figure {
                what: format!("{apps} × {APP}, {}", size_of(size as u64)),
                value: size as f64 / routed as f64,
                unit: "B/cycle",
                note: format!("{routed} cycles{more}"),
            });
        }
        plots.push(plot);
    }
    drop(slots);
    figures.extend(ports::ports(project, opened, &scale.ports, plots)?);
    figures.extend(schedulers::schedulers(project, &scale.schedulers)?);
    figures.extend(tenants::tenants(project, opened, scale.each, plots)?);
    if let Some(messages) = scale.many {
        figures.extend(tenants::many(project, card, messages)?);
    }
    figures.extend(narrow::narrow(project, card, &scale.narrow)?);
    figures.extend(ethernet::ethernet(project, card, &scale.ethernet)?);
    figures.extend(driver::driver(project, opened, &scale.driver)?);
    Ok(figures)
}

/// Sends one message through these apps; the cycles from its first command to its last completion.
fn message(line: &[&Slot], data: &[u8]) -> Result<u64> {
    let (Some((first, behind)), out) = (line.split_first(), SharedBytes::default()) else { return Ok(0) };
    let job = behind.iter().fold(StreamJob::new(first), |job, slot| job.then(slot));
    let report = job
        .input(0, Endpoint::bytes("in", SharedBytes::new(data.to_vec())))
        .output(0, Endpoint::bytes("out", out.clone()), OutLength::Same)
        .run()?;
    match out.take() == data {
        true => Ok(report.cycles),
        false => wrong(&format!("a message of {} through {} apps", size_of(data.len() as u64), line.len())),
    }
}
