# SPDX-License-Identifier: Apache-2.0
# Generated from apps/{{ name }}/app.toml. Do not edit.
"""Registers of app {{ name }}."""

from collections.abc import Callable


class {{ camel }}:
    """The registers as properties; `read(offset)` and `write(offset, word)` reach the slot's register window."""

    def __init__(self, read: Callable[[int], int], write: Callable[[int, int], None]) -> None:
        self._read_word, self._write_word = read, write

    def _read(self, offset: int, words: int) -> int:
        return sum(self._read_word(offset + 4 * i) << (32 * i) for i in range(words))

    def _write(self, offset: int, width: int, value: int) -> None:
        if not 0 <= value < 1 << width:
            raise ValueError(f"{value} does not fit {width} bits")
        for i in range((width + 31) // 32):
            self._write_word(offset + 4 * i, value >> (32 * i) & 0xFFFFFFFF)
{% for r in registers %}

{% if r.access != "pulse" %}
    @property
    def {{ r.python }}(self) -> int:
        # {{ r.doc }}
        return self._read({{ r.offset_hex }}, {{ r.count }})
{% endif %}
{% if r.access == "rw" %}

    @{{ r.python }}.setter
    def {{ r.python }}(self, value: int) -> None:
        self._write({{ r.offset_hex }}, {{ r.width }}, value)
{% elif r.access == "pulse" %}
    def {{ r.python }}(self, value: int = 1) -> None:
        # {{ r.doc }}
        self._write({{ r.offset_hex }}, {{ r.width }}, value)
{% endif %}
{% endfor %}
