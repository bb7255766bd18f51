/* SPDX-License-Identifier: Apache-2.0 */
/* Generated from apps/{{ name }}/app.toml. Do not edit. */
/* Registers of app {{ name }}: {{ summary }}. */
#ifndef VIADUCT_APP_{{ upper }}_H
#define VIADUCT_APP_{{ upper }}_H
#include <stdint.h>

/* How to reach the slot's register window; each function returns 0 or a negative errno. */
struct {{ name }}_io {
  void *ctx;
  int (*read)(void *ctx, uint32_t offset, uint32_t *value);
  int (*write)(void *ctx, uint32_t offset, uint32_t value);
};
{% for r in registers %}

/* {{ r.doc }}: {{ r.width }} bits, {{ r.access }}{{ ", reset " ~ r.reset_hex if r.access == "rw" }} */
#define {{ upper }}_{{ r.upper }}_OFFSET {{ r.offset_hex }}u
#define {{ upper }}_{{ r.upper }}_WORDS {{ r.count }}u
{% if r.access != "pulse" %}
static inline int {{ name }}_{{ r.name }}_read(const struct {{ name }}_io *io, uint32_t value[{{ r.count }}]) {
  for (uint32_t i = 0; i < {{ r.count }}u; i++) {
    int err = io->read(io->ctx, {{ r.offset_hex }}u + 4u * i, &value[i]);
    if (err) return err;
  }
  return 0;
}
{% endif %}
{% if r.access != "ro" %}
static inline int {{ name }}_{{ r.name }}_write(const struct {{ name }}_io *io, const uint32_t value[{{ r.count }}]) {
  for (uint32_t i = 0; i < {{ r.count }}u; i++) {
    int err = io->write(io->ctx, {{ r.offset_hex }}u + 4u * i, value[i]);
    if (err) return err;
  }
  return 0;
}
{% endif %}
{% endfor %}

#endif
