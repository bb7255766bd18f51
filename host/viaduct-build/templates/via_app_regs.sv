// SPDX-License-Identifier: Apache-2.0
// Generated from apps/{{ name }}/app.toml. Do not edit.
//
// Registers of app {{ name }}. A request is answered once, one cycle later, and must then fall for a cycle.
// A register of several words is one value: its words are written from low to high and change together with the highest;
// reading the lowest word keeps the others for the reads that follow. Unknown addresses, and writes where there is nothing to
// write, are answered with an error.

module via_app_regs (
  input  logic        clk_i,
  input  logic        rst_ni,
  input  logic        reg_valid_i,
  input  logic        reg_write_i,
  /* verilator lint_off UNUSEDSIGNAL */  // which bits are used depends on the registers
  input  logic [11:0] reg_addr_i,
  input  logic [31:0] reg_wdata_i,
  /* verilator lint_on UNUSEDSIGNAL */
{% for r in registers %}
  // {{ r.doc }}
{% if r.access == "ro" %}
  input  {{ r.wire }} {{ r.name }}_i,
{% else %}
  output {{ r.wire }} {{ r.name }}_o,
{% endif %}
{% if r.strobe %}
  output logic {{ r.name }}_we_o,
{% endif %}
{% endfor %}
  output logic        reg_rvalid_o,
  output logic [31:0] reg_rdata_o,
  output logic        reg_err_o
);

  logic done_q;  // the request on the port was answered
  logic take, wr, rd;
  assign take = reg_valid_i && !done_q;
  assign wr = take && reg_write_i;
  assign rd = take && !reg_write_i;

{% if stage_words %}
  logic [{{ stage_words - 1 }}:0][31:0] stage_q;  // words written, waiting for the highest
  logic [{{ stage_words - 1 }}:0][31:0] snap_q;  // words of the register whose lowest was read last
{% endif %}

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      done_q       <= 1'b0;
      reg_rvalid_o <= 1'b0;
    end else begin
      done_q       <= reg_valid_i;
      reg_rvalid_o <= take;
    end
  end

{% for r in registers if r.access != "ro" %}
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      {{ r.name }}_o <= {{ r.reset }};
{% if r.strobe %}
      {{ r.name }}_we_o <= 1'b0;
{% endif %}
    end else begin
{% if r.access == "pulse" %}
      {{ r.name }}_o <= wr && reg_addr_i == 12'h{{ "%03x"|format(r.offset) }} ? reg_wdata_i{% if r.width < 32 %}[{{ r.width - 1 }}:0]{% endif %} : '0;
{% else %}
{% set top_word = r.words|last %}
      if (wr && reg_addr_i == 12'h{{ "%03x"|format(top_word.index * 4) }}) {{ r.name }}_o <= {
{%- if true %}reg_wdata_i{% if top_word.bits < 32 %}[{{ top_word.bits - 1 }}:0]{% endif %}{% endif -%}
{%- if r.count > 1 %}, stage_q[{{ r.count - 2 }}:0]{% endif %}};
{% if r.strobe %}
      {{ r.name }}_we_o <= wr && reg_addr_i == 12'h{{ "%03x"|format(top_word.index * 4) }};
{% endif %}
{% endif %}
    end
  end

{% endfor %}
  always_ff @(posedge clk_i) begin
    if (take) reg_err_o <= 1'b0;
    if (take) reg_rdata_o <= '0;
{% if registers %}
    if (rd) begin
      case (reg_addr_i)
{% for r in registers %}
{% set value = r.name ~ ("_i" if r.access == "ro" else "_o") %}
{% for w in r.words %}
{% if r.access == "pulse" %}
        12'h{{ "%03x"|format(w.index * 4) }}: ;  // {{ r.name }}
{% elif w.k == 0 %}
        12'h{{ "%03x"|format(w.index * 4) }}: begin
          reg_rdata_o <= {{ "32'(" ~ value ~ ")" if r.width < 32 else value ~ "[31:0]" if r.width > 32 else value }};
{% if r.count > 1 %}
          snap_q[{{ r.count - 2 }}:0] <= {{ 32 * (r.count - 1) }}'({{ value }}[{{ r.width - 1 }}:32]);
{% endif %}
        end
{% else %}
        12'h{{ "%03x"|format(w.index * 4) }}: reg_rdata_o <= snap_q[{{ w.k - 1 }}];
{% endif %}
{% endfor %}
{% endfor %}
        default: reg_err_o <= 1'b1;
      endcase
    end
    if (wr) begin
      case (reg_addr_i)
{% for r in registers if r.access != "ro" %}
{% for w in r.words %}
{% if w.last %}
        12'h{{ "%03x"|format(w.index * 4) }}: ;  // {{ r.name }}
{% else %}
        12'h{{ "%03x"|format(w.index * 4) }}: stage_q[{{ w.k }}] <= reg_wdata_i;
{% endif %}
{% endfor %}
{% endfor %}
        default: reg_err_o <= 1'b1;
      endcase
    end
{% else %}
    if (wr || rd) reg_err_o <= 1'b1;
{% endif %}
  end

endmodule
