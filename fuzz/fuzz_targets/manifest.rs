// SPDX-License-Identifier: Apache-2.0
//! Manifests of apps. An accepted one follows its rules, has the same contents when written again, and files can be
//! generated from it; the error for a refused one is one line that can be shown on a terminal.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::collections::HashSet;
use std::fmt::Write;
use std::path::Path;
use std::sync::LazyLock;
use viaduct_build::{Access, Error, Format, Length, Manifest, Project};

const WINDOW: u32 = 4096;

/// A folder for generated files: a project without apps.
struct Place {
    project: Project,
    _folder: viaduct_build::Scratch,
}

static PLACE: LazyLock<Place> = LazyLock::new(|| {
    let folder = viaduct_build::Scratch::new().unwrap();
    for part in ["apps", "tools"] {
        std::fs::create_dir(folder.path().join(part)).unwrap();
    }
    std::fs::write(folder.path().join("tools/verilate.py"), "").unwrap();
    Place { project: Project::find(folder.path()).unwrap(), _folder: folder }
});

/// A TOML string.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => write!(out, "\\U{:08x}", c as u32).unwrap(),
            c => out.push(c),
        }
    }
    out + "\""
}

fn hex(words: &[u32]) -> String {
    let digits: String = words.iter().rev().map(|word| format!("{word:08x}")).collect();
    quoted(&format!("0x{digits}"))
}

/// A manifest as text.
fn written(m: &Manifest) -> String {
    let path = |p: &Path| quoted(p.to_str().unwrap());
    let sources: Vec<_> = m.sources.iter().map(|p| path(p)).collect();
    let mut out = format!(
        "[app]\nname = {}\nversion = {}\nsummary = {}\ntop = {}\nsources = [{}]\ndata_width = {:?}\n\
         busy = {}\nirq = {}\n",
        quoted(&m.name),
        quoted(&m.version),
        quoted(&m.summary),
        quoted(&m.top),
        sources.join(", "),
        m.data_width,
        m.busy,
        m.irq
    );
    if let Some(generator) = &m.generator {
        writeln!(out, "generator = {}", path(generator)).unwrap();
    }
    for s in &m.stream_in {
        writeln!(out, "[[stream_in]]\nname = {}\nlanes = {}", quoted(&s.name), s.lanes).unwrap();
    }
    for s in &m.stream_out {
        let length = match s.length {
            Length::Same => "same".to_owned(),
            Length::Any => "any".to_owned(),
            Length::Message(bytes) => format!("message:{bytes}"),
        };
        writeln!(out, "[[stream_out]]\nname = {}\nlength = {}", quoted(&s.name), quoted(&length)).unwrap();
    }
    if let Some(memory) = &m.memory {
        writeln!(out, "[[memory]]\nname = {}", quoted(&memory.name)).unwrap();
        let roles = [&memory.base, &memory.bytes, &memory.start, &memory.done];
        for (role, register) in ["base", "bytes", "start", "done"].iter().zip(roles) {
            if let Some(register) = register {
                writeln!(out, "{role} = {}", quoted(register)).unwrap();
            }
        }
    }
    for r in &m.registers {
        let format = if r.format == Format::Bytes { "bytes" } else { "number" };
        let access = match r.access {
            Access::Rw => "rw",
            Access::Ro => "ro",
            Access::Pulse => "pulse",
        };
        let (name, doc) = (quoted(&r.name), quoted(&r.doc));
        writeln!(
            out,
            "[[register]]\nname = {name}\nwidth = {}\naccess = \"{access}\"\nformat = \"{format}\"\n\
             required = {}\nstrobe = {}\ndoc = {doc}",
            r.width, r.required, r.strobe
        )
        .unwrap();
        if r.access == Access::Rw {
            writeln!(out, "reset = {}", hex(&r.reset)).unwrap();
        }
        if let Some(example) = &r.example {
            writeln!(out, "example = {}", quoted(example)).unwrap();
        }
    }
    if let Some(model) = &m.model {
        writeln!(out, "[model]\npython = {}", path(model)).unwrap();
    }
    out
}

fn check_rules(m: &Manifest) {
    let names = m.registers.iter().map(|r| &r.name).collect::<HashSet<_>>();
    assert_eq!(names.len(), m.registers.len());
    let mut offset = 0;
    for r in &m.registers {
        assert_eq!((r.offset, r.words()), (offset, r.width.div_ceil(32)));
        assert!((1..=1024).contains(&r.width) && r.reset.len() == r.words() as usize, "{r:?}");
        offset += 4 * r.words();
        if let Some(example) = &r.example {
            assert_eq!(r.parse(example).unwrap().len(), r.words() as usize);
        }
    }
    assert!(offset <= WINDOW);
    let streams = m.stream_in.iter().map(|s| &s.name).chain(m.stream_out.iter().map(|s| &s.name));
    for name in [&m.name, &m.top].into_iter().chain(m.registers.iter().map(|r| &r.name)).chain(streams) {
        let letters = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        assert!((1..=31).contains(&name.len()) && name.chars().all(letters), "{name:?}");
    }
    // Sources may also be those that apps share.
    let sources = m.sources.iter().map(|p| p.strip_prefix("../common").unwrap_or(p));
    for path in sources.chain(m.model.as_deref()).chain(m.generator.as_deref()) {
        assert!(path.is_relative() && !path.components().any(|part| part.as_os_str() == ".."), "{path:?}");
    }
    for text in m.registers.iter().map(|r| &r.doc).chain([&m.summary]) {
        assert!(!text.contains("*/") && !text.chars().any(char::is_control), "{text:?}");
    }
}

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match Manifest::parse("apps/fuzz", text) {
        Ok(manifest) => {
            check_rules(&manifest);
            let again = written(&manifest);
            assert_eq!(Manifest::parse("apps/fuzz", &again).as_ref().ok(), Some(&manifest), "{again}");
            // Values of `--set` come from the user; the manifest's own examples and resets always parse.
            let set = manifest.registers.iter().filter(|r| r.access == Access::Rw);
            let set: Vec<_> = set.filter_map(|r| Some((r.name.as_str(), r.example.as_deref()?))).collect();
            let missing = |r: &viaduct_build::Register| r.required && r.example.is_none();
            let complete = !manifest.registers.iter().any(missing);
            assert_eq!(manifest.register_values(set).is_ok(), complete);
            // Slow, so not for every one. All use the same folder.
            if bytes.len() % 16 == 0 {
                let manifest = Manifest { name: "fuzz".to_owned(), ..manifest };
                PLACE.project.generate(&manifest).unwrap();
            }
        }
        Err(error) => {
            let shown = error.to_string();
            assert!(!shown.chars().any(char::is_control), "{shown:?}");
            if let Error::Manifest { line: Some(line), .. } = error {
                assert!((1..=text.lines().count() + 1).contains(&line), "{shown}");
            }
        }
    }
});
