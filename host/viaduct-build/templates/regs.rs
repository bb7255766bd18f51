// SPDX-License-Identifier: Apache-2.0
// Generated from apps/{{ name }}/app.toml. Do not edit.
//! Registers of app {{ name }}: {{ summary }}.

/// How to reach the slot's register window.
pub trait Window {
    /// What can go wrong.
    type Error;
    /// Reads the word at a byte offset.
    fn read(&mut self, offset: u32) -> Result<u32, Self::Error>;
    /// Writes the word at a byte offset.
    fn write(&mut self, offset: u32, value: u32) -> Result<(), Self::Error>;
}

/// The registers, over a window. Values are little-endian words.
pub struct {{ camel }}<W>(pub W);

impl<W: Window> {{ camel }}<W> {
{% for r in registers %}
    /// Byte offset of `{{ r.name }}`.
    pub const {{ r.upper }}_OFFSET: u32 = {{ r.offset_hex }};
{% endfor %}
{% for r in registers %}
{% if r.access != "pulse" %}
    /// Reads: {{ r.doc }}
    pub fn read_{{ r.name }}(&mut self) -> Result<[u32; {{ r.count }}], W::Error> {
        let mut value = [0; {{ r.count }}];
        for (word, offset) in value.iter_mut().zip(({{ r.offset_hex }}..).step_by(4)) {
            *word = self.0.read(offset)?;
        }
        Ok(value)
    }
{% endif %}
{% if r.access != "ro" %}
    /// Writes: {{ r.doc }}
    pub fn write_{{ r.name }}(&mut self, value: [u32; {{ r.count }}]) -> Result<(), W::Error> {
        value.into_iter().zip(({{ r.offset_hex }}..).step_by(4)).try_for_each(|(word, offset)| self.0.write(offset, word))
    }
{% endif %}
{% endfor %}
}
