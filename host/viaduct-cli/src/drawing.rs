// SPDX-License-Identifier: Apache-2.0
//! What the drawings of commands have in common.
//!
//! The colours are those of a light page. A style in the file replaces them where the reader's browser prefers dark ones, and
//! every file has its own background, so that it is readable on any page. A title and a description are for readers who do not see it.

use std::fmt::Write as _;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::fail::{Failure, Result, at};

/// Size of text; the library draws it a fifth smaller, in pixels.
pub const TEXT: i32 = 16;
/// Height of a line of it, and mean width of a character in pixels.
pub const ROW: i32 = 20;
pub const CHARACTER: f64 = 7.7;

/// A colour on a light page, and its replacement on a dark one.
pub struct Colour(pub RGBColor, pub &'static str);

pub const PAGE: Colour = Colour(RGBColor(0xff, 0xff, 0xff), "#0d1117");
pub const INK: Colour = Colour(RGBColor(0x1f, 0x23, 0x28), "#e6edf3");
pub const MUTED: Colour = Colour(RGBColor(0x57, 0x60, 0x6a), "#9198a1");
pub const GRID: Colour = Colour(RGBColor(0xd8, 0xde, 0xe4), "#30363d");

/// Text of a size and colour, and where its place is.
pub fn style_of(size: i32, colour: RGBColor, h: HPos, v: VPos) -> TextStyle<'static> {
    ("sans-serif", size).into_font().color(&colour).pos(Pos::new(h, v))
}

/// The file of a drawing that uses the colours of this module and its own: with title and description, and dark colours. `None` if it is no
/// SVG.
pub fn finished<'a>(
    mut svg: String,
    title: &str,
    description: &str,
    own: impl Iterator<Item = &'a Colour>,
) -> Option<String> {
    let tag = svg.find("<svg").and_then(|begin| svg[begin..].find('>').map(|end| begin + end + 1))?;
    let (title, description) = (escaped(title), escaped(description));
    let head = format!("\n<title>{title}</title>\n<desc>{description}</desc>\n<style>{}</style>", style(own));
    svg.insert_str(tag, &head);
    if !svg.ends_with('\n') {
        svg.push('\n');
    }
    Some(svg)
}

/// Fonts of the reader's system, and dark colours in place of those at each element.
fn style<'a>(own: impl Iterator<Item = &'a Colour>) -> String {
    let fonts =
        "-apple-system,BlinkMacSystemFont,'Segoe UI','Noto Sans',Helvetica,Arial,'DejaVu Sans',sans-serif";
    let mut rules = String::new();
    for Colour(RGBColor(r, g, b), dark) in [&PAGE, &INK, &MUTED, &GRID].into_iter().chain(own) {
        for what in ["fill", "stroke"] {
            let _ = write!(rules, "[{what}=\"#{r:02X}{g:02X}{b:02X}\"]{{{what}:{dark}}}");
        }
    }
    format!("text{{font-family:{fonts}}}@media (prefers-color-scheme: dark){{{rules}}}")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// A label in lines of at most so many characters, unless a word has more.
pub fn lines(label: &str, most: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in label.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= most => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Writes a file, in place of an existing one only when it is whole. What is no file, such as a pipe or device, is written as it is.
pub fn write(path: &Path, text: &str) -> Result {
    let written = || -> std::io::Result<()> {
        let kind = std::fs::metadata(path).map(|there| there.file_type());
        if kind.is_ok_and(|kind| !kind.is_file() && !kind.is_dir()) {
            return std::fs::OpenOptions::new().write(true).open(path)?.write_all(text.as_bytes());
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut file =
            tempfile::Builder::new().permissions(PermissionsExt::from_mode(0o666)).tempfile_in(folder)?;
        file.write_all(text.as_bytes())?;
        file.persist(path).map_err(|e| e.error)?;
        Ok(())
    };
    written().map_err(|e| -> Failure { at(path.display())(cause(e)) })
}

/// The system's error, without the name of the temporary file that it was about.
pub fn cause(e: std::io::Error) -> std::io::Error {
    let code = e.raw_os_error().or_else(|| {
        let inner = e.get_ref().and_then(|inner| inner.source())?;
        inner.downcast_ref::<std::io::Error>()?.raw_os_error()
    });
    code.map_or(e, std::io::Error::from_raw_os_error)
}
