// SPDX-License-Identifier: Apache-2.0
//! `app.toml`: read, checked, and given register offsets.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::project::nearest;
use crate::{Error, Result};

/// Bytes of a slot's register window.
const WINDOW: u32 = 4096;
/// Widest register, in bits.
const MAX_WIDTH: u32 = 1024;
/// Most streams of one direction.
const MAX_STREAMS: usize = 16;
/// A manifest longer than this is not one.
const MAX_FILE: u64 = 1 << 20;
/// Names other than an app's may not start like this: the wrapper uses them.
const RESERVED_PREFIX: &str = "via_";
/// Names that a generated class or type cannot have.
const RESERVED: [&str; 4] = ["self", "none", "true", "false"];

/// What the host may expect of an output stream's length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// As long as the message on the first input stream.
    Same,
    /// So many bytes for each input message.
    Message(u64),
    /// Not known before.
    Any,
}

/// Who may do what with a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    /// The host writes and reads; the app reads.
    Rw,
    /// The app drives; the host reads.
    Ro,
    /// What the host writes reaches the app for one cycle.
    Pulse,
}

/// How a value of a register is written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// Decimal, or hexadecimal after `0x`.
    #[default]
    Number,
    /// Hexadecimal bytes, first byte in the lowest byte, as `openssl` takes keys.
    Bytes,
}

/// An input stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamIn {
    /// Name of the port.
    pub name: String,
    /// Messages with ids 0 to `lanes - 1` may be sent interleaved in chunks; 1: one message after the other.
    pub lanes: u16,
}

/// An output stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamOut {
    /// Name of the port.
    pub name: String,
    /// What the host may expect.
    pub length: Length,
}

/// The memory port.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// Name of the port.
    pub name: String,
    /// Register that receives the virtual address.
    pub base: Option<String>,
    /// Register that receives the length in bytes.
    pub bytes: Option<String>,
    /// Register to write 1 to once the range is mapped.
    pub start: Option<String>,
    /// Register that reads 1 at the end.
    pub done: Option<String>,
}

/// A register.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Register {
    /// Name, and name of the wire.
    pub name: String,
    /// Bits.
    pub width: u32,
    /// Who may do what.
    pub access: Access,
    /// How a value is written down.
    pub format: Format,
    /// The user must give it.
    pub required: bool,
    /// The app gets a one-cycle wire `<name>_we_i` after each write.
    pub strobe: bool,
    /// Value after reset, little-endian words.
    pub reset: Vec<u32>,
    /// For the reference page.
    pub doc: String,
    /// Byte offset of the lowest word in the slot's register window.
    pub offset: u32,
}

impl Register {
    /// 32-bit words it occupies.
    pub fn words(&self) -> u32 {
        self.width.div_ceil(32)
    }

    /// Reads a value as a user writes it (see [`Format`]); returns little-endian words.
    pub fn parse(&self, text: &str) -> Result<Vec<u32>> {
        let bad = |problem: String| Error::Value {
            register: self.name.clone(),
            problem,
            remedy: match self.format {
                Format::Number => format!("give a number of at most {} bits, decimal or 0x…", self.width),
                Format::Bytes => {
                    format!("give {} bytes as {} hexadecimal digits", self.width / 8, self.width / 4)
                }
            },
        };
        parse_value(text, self.width, self.format).map_err(bad)
    }
}

fn parse_value(text: &str, width: u32, format: Format) -> std::result::Result<Vec<u32>, String> {
    let shown: String = text.chars().take(80).collect();
    let mut bytes = match format {
        Format::Bytes => {
            let digits = text.strip_prefix("0x").unwrap_or(text);
            let bytes = hex::decode(digits).map_err(|_| format!("{shown:?} is not hexadecimal bytes"))?;
            if bytes.len() * 8 != width as usize {
                return Err(format!("{} bytes given, it holds {}", bytes.len(), width / 8));
            }
            bytes
        }
        Format::Number => {
            let (digits, radix) = match text.strip_prefix("0x") {
                Some(d) => (d, 16),
                None => (text, 10),
            };
            let digits: String = digits.chars().filter(|c| *c != '_').collect();
            if digits.is_empty() || digits.len() > 400 {
                return Err(format!("{shown:?} is not a number"));
            }
            // Schoolbook: value = value * radix + digit, little-endian bytes.
            let mut value = vec![0u8; MAX_WIDTH as usize / 8];
            for c in digits.chars() {
                let mut carry = c.to_digit(radix).ok_or_else(|| format!("{shown:?} is not a number"))?;
                for b in &mut value {
                    let v = u32::from(*b) * radix + carry;
                    *b = v as u8;
                    carry = v >> 8;
                }
                if carry != 0 {
                    return Err(format!("{shown:?} does not fit {width} bits"));
                }
            }
            value
        }
    };
    let fits = (width..bytes.len() as u32 * 8).all(|bit| bytes[bit as usize / 8] >> (bit % 8) & 1 == 0);
    if !fits {
        return Err(format!("{shown:?} does not fit {width} bits"));
    }
    bytes.resize(width.div_ceil(32) as usize * 4, 0);
    Ok(bytes.chunks_exact(4).map(|w| u32::from_le_bytes([w[0], w[1], w[2], w[3]])).collect())
}

/// A checked manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// The app's folder.
    pub dir: PathBuf,
    /// Name of the app and of its folder.
    pub name: String,
    /// Version, three numbers.
    pub version: String,
    /// One line about it.
    pub summary: String,
    /// Its top module; the file is `rtl/<top>.sv`.
    pub top: String,
    /// Sources to read first, in this order, relative to the folder.
    pub sources: Vec<PathBuf>,
    /// Data widths it supports; empty: any.
    pub data_width: Vec<u32>,
    /// The app says when it computes (`busy_o`).
    pub busy: bool,
    /// The app has an interrupt (`irq_o`).
    pub irq: bool,
    /// Input streams.
    pub stream_in: Vec<StreamIn>,
    /// Output streams.
    pub stream_out: Vec<StreamOut>,
    /// Memory port.
    pub memory: Option<Memory>,
    /// Registers, in address order.
    pub registers: Vec<Register>,
    /// Golden model, relative to the folder.
    pub model: Option<PathBuf>,
}

impl Manifest {
    /// Reads and checks `dir/app.toml`.
    pub fn load(dir: impl AsRef<Path>) -> Result<Manifest> {
        let dir = dir.as_ref();
        let file = dir.join("app.toml");
        let len = std::fs::metadata(&file).map_err(Error::io(&file))?.len();
        let check = Check { file: &file, text: "" };
        if len > MAX_FILE {
            return Err(check.wrong(
                "app.toml",
                format!("{len} bytes long"),
                "a manifest has a few kilobytes",
            ));
        }
        let text = std::fs::read_to_string(&file).map_err(Error::io(&file))?;
        let manifest = Manifest::parse(dir, &text)?;
        let check = Check { file: &file, text: &text };
        let path = |key: &str, p: &Path| match dir.join(p).is_file() {
            true => Ok(()),
            false => Err(check.wrong(
                key,
                format!("{} does not exist", p.display()),
                "name a file in the app's folder",
            )),
        };
        path("app.top", &Path::new("rtl").join(format!("{}.sv", manifest.top)))?;
        for s in &manifest.sources {
            path("app.sources", s)?;
        }
        if let Some(m) = &manifest.model {
            path("model.python", m)?;
        }
        if dir.file_name().is_some_and(|n| n != manifest.name.as_str()) {
            return Err(check.wrong(
                "app.name",
                format!("{:?} is not the name of its folder", manifest.name),
                "give both the same name",
            ));
        }
        Ok(manifest)
    }

    /// Checks the text of a manifest; `dir` is only named, not read.
    pub fn parse(dir: impl AsRef<Path>, text: &str) -> Result<Manifest> {
        let dir = dir.as_ref();
        let file = dir.join("app.toml");
        let check = Check { file: &file, text };
        let raw: Raw = toml::from_str(text).map_err(|e| {
            let line = e.span().map(|s| 1 + text.bytes().take(s.start).filter(|b| *b == b'\n').count());
            Error::Manifest {
                file: file.clone(),
                line,
                key: "not a manifest".to_owned(),
                problem: e.message().trim_end().replace('\n', "; "),
                remedy: "docs/apps.md lists the keys and their values".to_owned(),
            }
        })?;
        check.manifest(dir, raw)
    }

    /// The register of that name.
    pub fn register(&self, name: &str) -> Option<&Register> {
        self.registers.iter().find(|r| r.name == name)
    }

    /// Turns `--set` pairs into values for the writable registers: refuses unknown names and missing required ones,
    /// fills in reset values.
    pub fn register_values<'a>(
        &self,
        set: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<BTreeMap<String, Vec<u32>>> {
        let mut values = BTreeMap::new();
        for (name, text) in set {
            let wrong =
                |problem: String, remedy: String| Error::Value { register: name.to_owned(), problem, remedy };
            let settable = self.settable();
            let known = match settable.as_slice() {
                [] => "it has none to set".to_owned(),
                s => format!("its registers are {}", s.join(", ")),
            };
            let register = match self.register(name) {
                Some(r) if r.access == Access::Rw => r,
                Some(_) => {
                    return Err(wrong(format!("app {} has it, but it can not be set", self.name), known));
                }
                None => {
                    let remedy =
                        nearest(name, settable).map_or(known, |near| format!("did you mean {near}?"));
                    return Err(wrong(format!("app {} has no such register", self.name), remedy));
                }
            };
            if values.insert(name.to_owned(), register.parse(text)?).is_some() {
                return Err(wrong("given twice".to_owned(), "give each register once".to_owned()));
            }
        }
        for r in self.registers.iter().filter(|r| r.access == Access::Rw) {
            if r.required && !values.contains_key(&r.name) {
                return Err(Error::Value {
                    register: r.name.clone(),
                    problem: "must be given".to_owned(),
                    remedy: format!("add --set {}=… ({})", r.name, r.doc),
                });
            }
            values.entry(r.name.clone()).or_insert_with(|| r.reset.clone());
        }
        Ok(values)
    }

    fn settable(&self) -> Vec<&str> {
        self.registers.iter().filter(|r| r.access == Access::Rw).map(|r| r.name.as_str()).collect()
    }
}

// ---------------------------------------------------------------- as written in the file

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    app: RawApp,
    #[serde(default)]
    stream_in: Vec<RawStreamIn>,
    #[serde(default)]
    stream_out: Vec<RawStreamOut>,
    #[serde(default)]
    memory: Vec<Memory>,
    #[serde(default)]
    register: Vec<RawRegister>,
    model: Option<RawModel>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawApp {
    name: String,
    version: String,
    summary: String,
    top: String,
    #[serde(default)]
    sources: Vec<PathBuf>,
    #[serde(default)]
    data_width: Vec<u32>,
    #[serde(default)]
    busy: bool,
    #[serde(default)]
    irq: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawStreamIn {
    name: String,
    #[serde(default = "one")]
    lanes: u16,
}

fn one() -> u16 {
    1
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawStreamOut {
    name: String,
    length: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRegister {
    name: String,
    width: u32,
    access: Access,
    #[serde(default)]
    format: Format,
    #[serde(default)]
    required: bool,
    #[serde(default)]
    strobe: bool,
    reset: Option<RawReset>,
    #[serde(default)]
    doc: String,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum RawReset {
    Number(u64),
    Text(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawModel {
    python: PathBuf,
}

// ---------------------------------------------------------------- rules

struct Check<'a> {
    file: &'a Path,
    text: &'a str,
}

/// The line that a key path names: `app.version`, `register.key`, `register.key.width`. Found in the text, because a
/// parsed manifest has no lines; a table written in an unusual way has none.
fn line_of(text: &str, key: &str) -> Option<usize> {
    let value = |line: &str, key: &str| {
        let rest = line.trim_start().strip_prefix(key)?.trim_start().strip_prefix('=')?;
        Some(rest.trim_start().trim_matches(['"', '\'']).split(['"', '\'']).next().unwrap_or("").to_owned())
    };
    let mut path = key.splitn(3, '.');
    let (table, second, third) = (path.next()?, path.next(), path.next());
    let lines: Vec<&str> = text.lines().collect();
    for (begin, header) in lines.iter().enumerate() {
        let is_array = match header.trim().strip_prefix('[').and_then(|h| h.split(']').next()) {
            Some(name) if name.trim() == table => false,
            Some(name) if name.strip_prefix('[').is_some_and(|n| n.trim() == table) => true,
            _ => continue,
        };
        let body = lines[begin + 1..].iter().take_while(|l| !l.trim_start().starts_with('['));
        let find = |key: &str| body.clone().position(|l| value(l, key).is_some()).map(|n| begin + n + 2);
        let field = if is_array {
            if let Some(name) = second
                && !body.clone().any(|l| value(l, "name").is_some_and(|v| v == name))
            {
                continue;
            }
            third
        } else {
            second
        };
        return Some(field.and_then(find).unwrap_or(begin + 1));
    }
    None
}

/// Whether an app may be called so.
pub(crate) fn is_free_name(name: &str) -> bool {
    is_name(name) && !name.starts_with(RESERVED_PREFIX) && !RESERVED.contains(&name)
}

fn is_name(s: &str) -> bool {
    s.len() <= 31
        && s.starts_with(|c: char| c.is_ascii_lowercase())
        && s.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

fn is_inside(p: &Path) -> bool {
    p.components().all(|c| matches!(c, std::path::Component::Normal(_)))
}

pub(crate) const NAME_RULE: &str = "use up to 31 lower-case letters, digits and underscores, a letter first, not starting with via_, and not self, none, true or false";

impl Check<'_> {
    fn wrong(&self, key: &str, problem: impl Into<String>, remedy: impl Into<String>) -> Error {
        Error::Manifest {
            file: self.file.to_owned(),
            line: line_of(self.text, key),
            key: key.to_owned(),
            problem: problem.into(),
            remedy: remedy.into(),
        }
    }

    fn name(&self, key: &str, name: &str) -> Result<()> {
        if is_free_name(name) {
            return Ok(());
        }
        Err(self.wrong(key, format!("{name:?} cannot be a name"), NAME_RULE))
    }

    /// Text that lands in a comment of generated files: one line, nothing that ends a comment.
    fn line(&self, key: &str, text: &str) -> Result<()> {
        if text.chars().count() <= 200 && !text.chars().any(char::is_control) && !text.contains("*/") {
            return Ok(());
        }
        Err(self.wrong(
            key,
            "not one plain line",
            "use at most 200 characters, no control characters, no \"*/\"",
        ))
    }

    fn manifest(&self, dir: &Path, raw: Raw) -> Result<Manifest> {
        let app = raw.app;
        self.name("app.name", &app.name)?;
        self.name("app.top", &app.top)?;
        self.line("app.summary", &app.summary)?;
        if app.summary.is_empty() {
            return Err(self.wrong("app.summary", "empty", "say in one line what the app does"));
        }
        let parts: Vec<_> = app.version.split('.').collect();
        if parts.len() != 3 || parts.iter().any(|p| p.len() > 5 || p.parse::<u32>().is_err()) {
            return Err(self.wrong(
                "app.version",
                format!("{:?} is not a version", app.version),
                "use three numbers, such as \"0.1.0\"",
            ));
        }
        for w in &app.data_width {
            if ![64, 128, 256, 512].contains(w) {
                return Err(self.wrong(
                    "app.data_width",
                    format!("no card is {w} bits wide"),
                    "use 64, 128, 256 or 512",
                ));
            }
        }
        for s in &app.sources {
            if !is_inside(s) {
                return Err(self.wrong(
                    "app.sources",
                    format!("{} is not in the app's folder", s.display()),
                    "use a path below the folder, without ..",
                ));
            }
        }
        let model = match raw.model {
            Some(m) if !is_inside(&m.python) => {
                return Err(self.wrong(
                    "model.python",
                    "not in the app's folder",
                    "use a path below the folder, without ..",
                ));
            }
            m => m.map(|m| m.python),
        };
        for (key, n) in [("stream_in", raw.stream_in.len()), ("stream_out", raw.stream_out.len())] {
            if n > MAX_STREAMS {
                return Err(self.wrong(key, format!("{n} streams"), format!("use at most {MAX_STREAMS}")));
            }
        }
        if raw.memory.len() > 1 {
            return Err(self.wrong(
                "memory",
                format!("{} memory ports", raw.memory.len()),
                "use at most one",
            ));
        }
        let stream_in = raw.stream_in.into_iter().map(|s| self.stream_in(s)).collect::<Result<Vec<_>>>()?;
        let stream_out =
            raw.stream_out.into_iter().map(|s| self.stream_out(s)).collect::<Result<Vec<_>>>()?;
        let registers = self.registers(raw.register)?;
        let memory = raw.memory.into_iter().next();
        if let Some(m) = &memory {
            self.memory(m, &registers)?;
        }
        if stream_in.is_empty() && stream_out.is_empty() && memory.is_none() && registers.is_empty() {
            return Err(self.wrong(
                "app.toml",
                "the app has no port and no register",
                "add [[stream_in]], [[stream_out]], [[memory]] or [[register]]",
            ));
        }
        let manifest = Manifest {
            dir: dir.to_owned(),
            name: app.name,
            version: app.version,
            summary: app.summary,
            top: app.top,
            sources: app.sources,
            data_width: app.data_width,
            busy: app.busy,
            irq: app.irq,
            stream_in,
            stream_out,
            memory,
            registers,
            model,
        };
        let mut seen = HashSet::new();
        for (name, _) in manifest.app_ports() {
            if !seen.insert(name.clone()) {
                return Err(self.wrong(
                    "app.toml",
                    format!("two things give the app a port {name}"),
                    "rename the stream, memory port or register",
                ));
            }
        }
        Ok(manifest)
    }

    fn stream_in(&self, s: RawStreamIn) -> Result<StreamIn> {
        let key = format!("stream_in.{}", s.name);
        self.name(&key, &s.name)?;
        if !(1..=256).contains(&s.lanes) {
            return Err(self.wrong(&format!("{key}.lanes"), format!("{} lanes", s.lanes), "use 1 to 256"));
        }
        Ok(StreamIn { name: s.name, lanes: s.lanes })
    }

    fn stream_out(&self, s: RawStreamOut) -> Result<StreamOut> {
        let key = format!("stream_out.{}", s.name);
        self.name(&key, &s.name)?;
        let length = match s.length.as_deref() {
            None | Some("any") => Length::Any,
            Some("same") => Length::Same,
            Some(text) => match text.strip_prefix("message:").and_then(|n| n.parse().ok()) {
                Some(n) if (1..=1 << 32).contains(&n) => Length::Message(n),
                _ => {
                    return Err(self.wrong(
                        &format!("{key}.length"),
                        format!("{text:?} is not a length"),
                        "use \"same\", \"any\" or \"message:BYTES\"",
                    ));
                }
            },
        };
        Ok(StreamOut { name: s.name, length })
    }

    fn registers(&self, raw: Vec<RawRegister>) -> Result<Vec<Register>> {
        let mut offset = 0;
        let mut registers: Vec<Register> = Vec::new();
        for r in raw {
            let key = |k: &str| format!("register.{}{}{k}", r.name, if k.is_empty() { "" } else { "." });
            self.name(&key(""), &r.name)?;
            self.line(&key("doc"), &r.doc)?;
            if registers.iter().any(|o| o.name == r.name) {
                return Err(self.wrong(&key(""), "there are two registers of this name", "rename one"));
            }
            let most = if r.access == Access::Pulse { 32 } else { MAX_WIDTH };
            if r.width == 0 || r.width > most {
                return Err(self.wrong(
                    &key("width"),
                    format!("{} bits", r.width),
                    format!("use 1 to {most}"),
                ));
            }
            if r.format == Format::Bytes && r.width % 8 != 0 {
                return Err(self.wrong(
                    &key("format"),
                    "the width is not a number of bytes",
                    "use a multiple of 8 bits",
                ));
            }
            for (what, given) in
                [("required", r.required), ("strobe", r.strobe), ("reset", r.reset.is_some())]
            {
                if given && r.access != Access::Rw {
                    return Err(self.wrong(
                        &key(what),
                        "only a register with access \"rw\" has it",
                        "remove it",
                    ));
                }
            }
            let reset = match &r.reset {
                None => "0".to_owned(),
                Some(RawReset::Number(n)) => n.to_string(),
                Some(RawReset::Text(t)) => t.clone(),
            };
            let reset = parse_value(&reset, r.width, Format::Number).map_err(|problem| {
                self.wrong(&key("reset"), problem, format!("use a number of at most {} bits", r.width))
            })?;
            let register = Register {
                name: r.name.clone(),
                width: r.width,
                access: r.access,
                format: r.format,
                required: r.required,
                strobe: r.strobe,
                reset,
                doc: r.doc.clone(),
                offset,
            };
            offset += register.words() * 4;
            if offset > WINDOW {
                return Err(self.wrong(
                    &key(""),
                    format!("the registers need more than {WINDOW} bytes"),
                    "use fewer or narrower ones",
                ));
            }
            registers.push(register);
        }
        Ok(registers)
    }

    fn memory(&self, m: &Memory, registers: &[Register]) -> Result<()> {
        let key = format!("memory.{}", m.name);
        self.name(&key, &m.name)?;
        let roles = [
            ("base", &m.base, Access::Rw, 48),
            ("bytes", &m.bytes, Access::Rw, 1),
            ("start", &m.start, Access::Pulse, 1),
            ("done", &m.done, Access::Ro, 1),
        ];
        for (role, name, access, least) in roles {
            let Some(name) = name else { continue };
            let key = format!("{key}.{role}");
            match registers.iter().find(|r| r.name == *name) {
                None => {
                    return Err(self.wrong(
                        &key,
                        format!("there is no register {name:?}"),
                        "name one of the [[register]] tables",
                    ));
                }
                Some(r) if r.access != access => {
                    return Err(self.wrong(
                        &key,
                        format!("register {name:?} has the wrong access"),
                        format!("use access = {:?}", format!("{access:?}").to_lowercase()),
                    ));
                }
                Some(r) if r.width < least => {
                    return Err(self.wrong(
                        &key,
                        format!("register {name:?} has {} bits", r.width),
                        format!("use at least {least}"),
                    ));
                }
                Some(_) => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GOOD: &str = r#"[app]
name = "aes"
version = "0.1.0"
summary = "AES"
top = "aes_app"
sources = ["rtl/aes_pkg.sv"]
data_width = [512]

[[stream_in]]
name = "in"

[[stream_out]]
name = "out"
length = "same"

[[register]]
name = "key"
width = 256
access = "rw"
format = "bytes"
required = true

[[register]]
name = "rounds"
width = 4
access = "ro"

[[register]]
name = "mode"
width = 2
access = "rw"
reset = 3

[model]
python = "model.py"
"#;

    fn parse(text: &str) -> Result<Manifest> {
        Manifest::parse("apps/aes", text)
    }

    #[test]
    fn a_good_one_is_read() {
        let m = parse(GOOD).unwrap();
        assert_eq!(
            (m.name.as_str(), m.top.as_str(), m.data_width.as_slice()),
            ("aes", "aes_app", &[512][..])
        );
        let offsets: Vec<_> = m.registers.iter().map(|r| (r.name.as_str(), r.offset, r.words())).collect();
        assert_eq!(offsets, [("key", 0, 8), ("rounds", 32, 1), ("mode", 36, 1)]);
        assert_eq!(m.stream_out[0].length, Length::Same);
        let key = "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4";
        let values = m.register_values([("key", key)]).unwrap();
        assert_eq!(values["key"][0].to_le_bytes(), [0x60, 0x3d, 0xeb, 0x10]);
        assert_eq!(values["mode"], [3]);
        assert!(!values.contains_key("rounds"));
    }

    /// Each change of the good manifest is refused, at the line that was changed, in words that name the matter.
    #[test]
    fn errors_name_the_line_and_the_matter() {
        for (from, to, line, words) in [
            ("name = \"aes\"", "name = \"AES\"", 2, "cannot be a name"),
            ("version = \"0.1.0\"", "version = \"1\"", 3, "not a version"),
            ("version = \"0.1.0\"", "versoin = \"1\"", 3, "unknown field `versoin`"),
            ("summary = \"AES\"", "summary = \"\"", 4, "empty"),
            ("summary = \"AES\"", "summary = \"a\\nb\"", 4, "one plain line"),
            ("[\"rtl/aes_pkg.sv\"]", "[\"../x.sv\"]", 6, "not in the app's folder"),
            ("[512]", "[500]", 7, "no card is 500 bits wide"),
            ("[512]", "[512", 9, "array"),
            ("length = \"same\"", "length = \"long\"", 14, "not a length"),
            ("width = 256", "width = 0", 18, "0 bits"),
            ("width = 256", "width = 1025", 18, "use 1 to 1024"),
            ("width = 256", "width = 250", 20, "not a number of bytes"),
            ("width = 256", "width = -1", 18, "invalid value"),
            ("access = \"ro\"", "access = \"wo\"", 26, "unknown variant `wo`"),
            ("reset = 3", "reset = 4", 32, "does not fit 2 bits"),
            ("reset = 3", "reset = \"x\"", 32, "not a number"),
            ("name = \"mode\"", "name = \"key\"", 16, "two registers"),
            ("name = \"mode\"", "name = \"in\"", 0, "two things give the app a port in_i"),
            ("python = \"model.py\"", "python = \"/etc/x.py\"", 35, "not in the app's folder"),
        ] {
            assert!(GOOD.contains(from), "{from}");
            let error = parse(&GOOD.replacen(from, to, 1)).unwrap_err().to_string();
            let place = if line == 0 { "app.toml: ".to_owned() } else { format!("app.toml:{line}: ") };
            assert!(error.contains(&place) && error.contains(words), "{to}: {error}");
            assert_eq!(error.lines().count(), 1, "{error}");
        }
    }

    #[test]
    fn values_are_checked() {
        let m = parse(GOOD).unwrap();
        let key = "00".repeat(32);
        for (set, words) in [
            (vec![], "register key: must be given"),
            (vec![("key", "00")], "1 bytes given, it holds 32"),
            (vec![("key", "zz")], "not hexadecimal"),
            (vec![("kye", &key)], "did you mean key?"),
            (vec![("rounds", "1")], "can not be set"),
            (vec![("key", &key), ("mode", "4")], "does not fit 2 bits"),
            (vec![("key", &key), ("mode", "")], "not a number"),
            (vec![("key", &key), ("mode", "-1")], "not a number"),
            (vec![("key", &key), ("mode", "0x")], "not a number"),
            (vec![("key", &key), ("mode", "1"), ("mode", "1")], "given twice"),
        ] {
            let error = m.register_values(set).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn a_hundred_kinds_of_registers_fit_or_do_not() {
        let register = |i: usize| format!("[[register]]\nname='r{i}'\nwidth=1024\naccess='rw'\n");
        let with = |n: usize| format!("{GOOD}{}", (0..n).map(register).collect::<String>());
        assert!(parse(&with(31)).is_ok());
        assert!(parse(&with(32)).unwrap_err().to_string().contains("more than 4096 bytes"));
    }

    proptest! {
        #[test]
        fn any_text_is_taken_or_refused(text in ".{0,300}") {
            let _ = parse(&text);
        }

        /// Whatever is done to a good manifest, it is taken or refused, and errors blame a line that exists.
        #[test]
        fn any_damage_is_taken_or_refused(at in 0..GOOD.len(), cut in 0usize..20, put in "[a-z\"\\[\\]=\n0-9.#']{0,8}") {
            let text = format!("{}{put}{}", &GOOD[..at], &GOOD[(at + cut).min(GOOD.len())..]);
            match parse(&text) {
                Ok(m) => prop_assert!(m.registers.iter().all(|r| r.offset + r.words() * 4 <= WINDOW)),
                Err(Error::Manifest { line: Some(line), .. }) => prop_assert!(line >= 1 && line <= text.lines().count() + 1),
                Err(e) => prop_assert!(!e.to_string().is_empty()),
            }
        }

        #[test]
        fn numbers_round_trip(words in prop::collection::vec(any::<u32>(), 1..=4)) {
            let width = words.len() as u32 * 32;
            let hex: String = words.iter().rev().map(|w| format!("{w:08x}")).collect();
            prop_assert_eq!(parse_value(&format!("0x{hex}"), width, Format::Number), Ok(words.clone()));
            let value = u128::from_str_radix(&hex, 16).unwrap();
            prop_assert_eq!(parse_value(&value.to_string(), width, Format::Number), Ok(words));
        }

        #[test]
        fn any_value_is_taken_or_refused(text in ".{0,40}", width in 1u32..=1024, bytes in any::<bool>()) {
            let format = if bytes { Format::Bytes } else { Format::Number };
            if let Ok(words) = parse_value(&text, width, format) {
                prop_assert_eq!(words.len() as u32, width.div_ceil(32));
                prop_assert!(width % 32 == 0 || words[words.len() - 1] >> (width % 32) == 0);
            }
        }
    }
}
