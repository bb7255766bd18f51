// SPDX-License-Identifier: Apache-2.0
//! Manifests of apps.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;

use crate::nearest::meant;
use crate::value::{Format, parse_value};
use crate::{Error, Result};

/// Length of an output stream's messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// As long as the message on the first input stream.
    Same,
    /// This number of bytes for each input message.
    Message(u64),
    /// Not known in advance.
    Any,
}

/// Access to a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    /// The host writes and reads; the app reads.
    Rw,
    /// The app drives; the host reads.
    Ro,
    /// A written value is presented to the app for one cycle.
    Pulse,
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
    /// Length of its messages.
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
    /// Access.
    pub access: Access,
    /// Text format of values.
    pub format: Format,
    /// A value must be given by the user.
    pub required: bool,
    /// The app gets a one-cycle wire `<name>_we_i` after each write.
    pub strobe: bool,
    /// Value after reset, little-endian words.
    pub reset: Vec<u32>,
    /// A value for `viaduct test`, where not every value is valid.
    pub example: Option<String>,
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
    /// Its top module; the file is `rtl/<top>.sv`, unless it is generated.
    pub top: String,
    /// Python program that writes the top module as Verilog, relative to the folder.
    pub generator: Option<PathBuf>,
    /// Sources to read first, in this order, relative to the folder; those that apps share are in `../common`.
    pub sources: Vec<PathBuf>,
    /// Data widths it supports; empty: any.
    pub data_width: Vec<u32>,
    /// The app reports when it computes (`busy_o`).
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
    /// Length of an output when the apps in `before`, from the first on, are in front of this one, each with one output: this app's input is
    /// as long as the first one's only if all their outputs are.
    pub fn length_behind<'a>(&self, before: impl IntoIterator<Item = &'a Self>, output: usize) -> Length {
        let mut streams = before.into_iter().flat_map(|app| &app.stream_out);
        match self.stream_out[output].length {
            Length::Same if streams.any(|stream| stream.length != Length::Same) => Length::Any,
            length => length,
        }
    }

    /// Whether the app has exactly one input and one output stream.
    pub fn one_stream_each_way(&self) -> bool {
        self.stream_in.len() == 1 && self.stream_out.len() == 1
    }

    /// The register of that name.
    pub fn register(&self, name: &str) -> Option<&Register> {
        self.registers.iter().find(|r| r.name == name)
    }

    /// Converts `--set` pairs to values for the writable registers: refuses unknown names and missing required ones,
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
            let register = match self.register(name) {
                Some(r) if r.access == Access::Rw => r,
                Some(_) => {
                    let remedy = match settable.as_slice() {
                        [] => "leave it out".to_owned(),
                        names => format!("those that can be set are {}", names.join(", ")),
                    };
                    return Err(wrong(format!("app {} has it, but it cannot be set", self.name), remedy));
                }
                None => {
                    let problem = format!("app {} has no such register", self.name);
                    return Err(wrong(problem, meant(name, settable)));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::WINDOW;
    use crate::load::MAX_FILE;
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

    #[test]
    fn sources_may_be_shared() {
        let m = parse(&GOOD.replace("rtl/aes_pkg.sv", "../common/rtl/x.sv")).unwrap();
        assert_eq!(m.sources, [PathBuf::from("../common/rtl/x.sv")]);
    }

    /// Each change of the valid manifest is refused, with the changed line and a specific text.
    #[test]
    fn errors_name_the_line_and_the_matter() {
        for (from, to, line, words) in [
            ("name = \"aes\"", "name = \"AES\"", 2, "cannot be a name"),
            ("version = \"0.1.0\"", "version = \"1\"", 3, "not a version"),
            ("version = \"0.1.0\"", "versoin = \"1\"", 3, "unknown field `versoin`"),
            ("summary = \"AES\"", "summary = \"\"", 4, "empty"),
            ("summary = \"AES\"", "summary = \"a\\nb\"", 4, "one plain line"),
            ("[\"rtl/aes_pkg.sv\"]", "[\"../x.sv\"]", 6, "not in the app's folder"),
            ("[\"rtl/aes_pkg.sv\"]", "[\"../common/../x.sv\"]", 6, "not in the app's folder"),
            ("[\"rtl/aes_pkg.sv\"]", "[\"../commons/x.sv\"]", 6, "not in the app's folder"),
            ("sources = [", "generator = \"../x.py\"\nsources = [", 6, "not in the app's folder"),
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
            ("reset = 3", "reset = 3\nexample = 7", 33, "does not fit 2 bits"),
            ("name = \"mode\"", "name = \"key\"", 28, "two registers"),
            ("name = \"mode\"", "name = \"in\"", 28, "two items define a port in_i of the app"),
            (
                "length = \"same\"",
                "length = \"same\"\n[[stream_out]]\nname = \"out\"",
                15,
                "a port out_o of the app",
            ),
        ] {
            assert!(GOOD.contains(from), "{from}");
            let error = parse(&GOOD.replacen(from, to, 1)).unwrap_err().to_string();
            assert!(error.contains(&format!("app.toml:{line}: ")) && error.contains(words), "{to}: {error}");
            assert_eq!(error.lines().count(), 1, "{error}");
        }
    }

    #[test]
    fn errors_do_not_reach_the_terminal_raw() {
        for (from, to) in [
            ("name = \"in\"", "name = \"\\u001b[2J\""),
            ("sources = [\"rtl", "sources = [\"/\\u001b[2J\\n"),
            ("version =", "\"\\u001b[2J\" = 1\nversion ="),
            ("length = \"same\"", "length = \"\\u001b\""),
        ] {
            assert!(GOOD.contains(from), "{from}");
            let error = parse(&GOOD.replacen(from, to, 1)).unwrap_err().to_string();
            assert!(!error.chars().any(char::is_control), "{error:?}");
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
            (vec![("rounds", "1")], "cannot be set"),
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
    fn the_manifest_of_an_image_is_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let image = folder.path().join("any.via");
        let name = parse(GOOD).unwrap().name;
        assert_eq!(Manifest::beside(&image, &name).unwrap(), None);
        let file = folder.path().join("any.toml");
        std::fs::write(&file, GOOD).unwrap();
        let app = Manifest::beside(&image, &name).unwrap().unwrap();
        assert_eq!((app.dir.as_path(), app.model), (folder.path(), None));
        let error = Manifest::beside(&image, "other").unwrap_err().to_string();
        assert!(error.contains("the image is of other"), "{error}");
        std::fs::write(&file, GOOD.replace("[app]", "[app")).unwrap();
        let error = Manifest::beside(&image, &name).unwrap_err().to_string();
        assert!(error.contains("any.toml:"), "{error}");
        std::fs::write(&file, vec![b'#'; MAX_FILE as usize + 1]).unwrap();
        let error = Manifest::beside(&image, &name).unwrap_err().to_string();
        assert!(error.contains("a few kilobytes"), "{error}");
        std::fs::write(&file, b"a\n\xff\n").unwrap();
        let error = Manifest::beside(&image, &name).unwrap_err().to_string();
        assert!(error.contains("line 2 is not UTF-8"), "{error}");
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

        /// Any change of a valid manifest is accepted or refused, and errors name an existing line.
        #[test]
        fn any_damage_is_taken_or_refused(at in 0..GOOD.len(), cut in 0usize..20, put in "[a-z\"\\[\\]=\n0-9.#']{0,8}") {
            let text = format!("{}{put}{}", &GOOD[..at], &GOOD[(at + cut).min(GOOD.len())..]);
            match parse(&text) {
                Ok(m) => prop_assert!(m.registers.iter().all(|r| r.offset + r.words() * 4 <= WINDOW)),
                Err(Error::Manifest { line: Some(line), .. }) => prop_assert!(line >= 1 && line <= text.lines().count() + 1),
                Err(e) => prop_assert!(!e.to_string().is_empty()),
            }
        }
    }
}
