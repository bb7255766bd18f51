// SPDX-License-Identifier: Apache-2.0
//! What the paper on the system-level driver measures (Vipin et al., FPT 2013, section V): register and word accesses, double-buffered transfers
//! through card memory, reconfiguration; and rows with a step.

use viaduct::{Endpoint, OutLength, Rows, SharedBytes, Slot, StreamJob};
use viaduct_build::Project;

use super::{APP, Figure, image, wrong};
use crate::card::Opened;
use crate::cmd::bench::size_of;
use crate::fail::Result;
use crate::random::Random;

/// Bytes of the container that an image begins with, and where its number of further words is (`sim/include/viaduct_image.h`).
const CONTAINER: usize = 80;
const PADDING: usize = 12;

/// An app that has a register.
const WITH_REGISTER: &str = "inc";

/// How much is measured.
pub struct DriverScale {
    /// Bytes of a double-buffered transfer each way, and of rows.
    pub bytes: usize,
    /// Bytes of an image.
    pub image: usize,
}

/// All of it.
pub fn driver(project: &Project, opened: &Opened, scale: &DriverScale) -> Result<Vec<Figure>> {
    let slot = opened.card.slot(0)?;
    let image = image(project, opened, &project.load(APP)?)?;
    slot.load(&image)?;
    let mut figures = accesses(project, opened, &slot)?;
    figures.extend(buffered(&slot, scale.bytes)?);
    figures.extend(rows(opened, &slot, scale.bytes)?);
    figures.extend(reload(opened, &slot, image, scale.image)?);
    Ok(figures)
}

/// Cycles of an access: reads of the time enclose it, one of which takes as long as `read` says.
fn timed(opened: &Opened, read: u64, access: impl FnOnce() -> viaduct::Result<()>) -> Result<u64> {
    let card = &opened.card;
    let time = |card: &viaduct::Card| card.read_register(viaduct::regs::VIA_CARD_TIME_LO as u32);
    let before = time(card)?;
    access()?;
    Ok(u64::from(time(card)?.wrapping_sub(before)).saturating_sub(read))
}

/// Registers, and words of card memory.
fn accesses(project: &Project, opened: &Opened, slot: &Slot) -> Result<Vec<Figure>> {
    let card = &opened.card;
    let memory = card.allocate(4096)?;
    slot.write_word(&memory, 64, 7)?;
    let read = timed(opened, 0, || Ok(()))?;
    let scratch = viaduct::regs::VIA_CARD_SCRATCH as u32;
    let mut figures = Vec::new();
    let mut add = |what: &str, cycles: u64, note: String| {
        let ns = card.info().seconds(cycles) * 1e9;
        figures.push(Figure {
            what: what.to_owned(),
            value: cycles as f64,
            unit: "cycles",
            note: format!("{ns:.0} ns; {note}"),
        });
    };
    let link = opened.sim.as_ref().map_or(String::new(), |sim| {
        let cycles = |ns: u32| f64::from(ns) * f64::from(sim.profile.clk_khz) / 1e6;
        let (load, store) = (sim.profile.link.mmio_read_ns, sim.profile.link.mmio_write_ns);
        format!(", host and link {:.0}; a store needs {:.0} to the card", cycles(load), cycles(store))
    });
    add("register of the card, read", read, format!("to the card and back{link}; paper 1445 ns"));
    let write = timed(opened, read, || card.write_register(scratch, 1))?;
    add(
        "register of the card, write",
        write,
        "that a posted one adds to the next access; paper 133 ns".into(),
    );
    let app = {
        let inc = project.load(WITH_REGISTER)?;
        let other = card.slot(1)?;
        other.load(&image(project, opened, &inc)?)?;
        timed(opened, read, || other.read_register(0).map(drop))?
    };
    add("register of an app, read", app, format!("{} more than one of the card", app.saturating_sub(read)));
    let word = timed(opened, read, || slot.read_word(&memory, 64).map(drop))?;
    add(
        "word of card memory, read",
        word,
        "a command, its completion and its interrupt; paper 1785 ns".into(),
    );
    let word = timed(opened, read, || slot.write_word(&memory, 64, 8))?;
    add("word of card memory, write", word, "its beat is read and written; paper 264 ns, posted".into());
    match slot.read_word(&memory, 64)? {
        8 => Ok(figures),
        _ => wrong("words of card memory"),
    }
}

/// A message through the app by way of two buffers in card memory, and straight.
fn buffered(slot: &Slot, bytes: usize) -> Result<Vec<Figure>> {
    let data = Random(11).bytes(bytes);
    let mut figures = Vec::new();
    let mut add = |what: String, cycles: u64| {
        figures.push(Figure {
            what,
            value: bytes as f64 / cycles as f64,
            unit: "B/cycle",
            note: format!("{} each way in {cycles} cycles", size_of(bytes as u64)),
        });
    };
    let out = SharedBytes::default();
    let report = StreamJob::new(slot)
        .input(0, Endpoint::bytes("in", SharedBytes::new(data.clone())))
        .output(0, Endpoint::bytes("out", out.clone()), OutLength::Same)
        .run()?;
    if out.take() != data {
        return wrong("a message from host memory");
    }
    add(format!("{APP}, from and to host memory"), report.cycles);
    for half in [64 << 10, 256 << 10, 1 << 20] {
        let mut out = vec![0; bytes];
        let report = slot.run_buffered(&data, &mut out, half)?;
        if out != data {
            return wrong("a double-buffered message");
        }
        add(format!("{APP}, double-buffered through card memory, 2 × {}", size_of(half)), report.cycles);
    }
    Ok(figures)
}

/// Copies of rows.
fn rows(opened: &Opened, slot: &Slot, bytes: usize) -> Result<Vec<Figure>> {
    let card = &opened.card;
    let mut figures = Vec::new();
    for (row, step) in [(bytes as u64, bytes as u64), (4096, 8192), (256, 4096), (64, 4096)] {
        let count = (bytes as u64 / row).min(4096);
        let rows = Rows { bytes: row, rows: count, card_step: step, host_step: row };
        let data = Random(row).bytes((row * count) as usize);
        let memory = card.allocate(step * count)?;
        let begun = card.time()?;
        slot.copy_rows_in(&memory, 0, rows, &data)?;
        let turned = card.time()?;
        let mut back = vec![0; data.len()];
        slot.copy_rows_out(&memory, 0, rows, &mut back)?;
        let ended = card.time()?;
        if back != data {
            return wrong("rows of card memory");
        }
        let name = match count {
            1 => size_of(row),
            _ => format!("{count} rows of {} B every {step} B", row),
        };
        for (way, cycles) in [("to", turned - begun), ("from", ended - turned)] {
            figures.push(Figure {
                what: format!("copy {way} card memory, {name}"),
                value: (row * count) as f64 / cycles as f64,
                unit: "B/cycle",
                note: format!("{cycles} cycles, with the wait for each batch"),
            });
        }
    }
    Ok(figures)
}

/// Loading of an app whose image is as long as a partial bitstream, and of one that is only its container.
fn reload(opened: &Opened, slot: &Slot, mut image: Vec<u8>, bytes: usize) -> Result<Vec<Figure>> {
    let card = &opened.card;
    let time = |image: &[u8]| -> Result<u64> {
        let begun = card.time()?;
        slot.load(image)?;
        Ok(card.time()? - begun)
    };
    if opened.sim.is_none() || image.len() != CONTAINER {
        return Ok(Vec::new());
    }
    let short = time(&image)?;
    let words = (bytes - CONTAINER) / 4;
    image[PADDING..PADDING + 4].copy_from_slice(&(words as u32).to_le_bytes());
    image.resize(CONTAINER + 4 * words, 0);
    let long = time(&image)?;
    let each = (long - short) as f64 / words as f64;
    let info = card.info();
    let rate = 4.0 / each * f64::from(info.clock_khz) / 1e3;
    Ok(vec![
        Figure {
            what: format!("app reload, image of {}", size_of(image.len() as u64)),
            value: info.seconds(long) * 1e3,
            unit: "ms",
            note: format!(
                "{long} cycles, {short} of them for isolation, reset and start; published 57 ms, 800 MB/s"
            ),
        },
        Figure {
            what: "app reload, rate".to_owned(),
            value: rate,
            unit: "MB/s",
            note: format!(
                "{each:.2} cycles a word by the register port: {:.2} of the configuration port's word a cycle",
                1.0 / each
            ),
        },
    ])
}
