// SPDX-License-Identifier: Apache-2.0
// Generated from apps/{{ name }}/app.toml. Do not edit.
//
// Slot wrapper of app {{ name }}: registered boundary, registers, busy and interrupt. Ports the app does not use are tied off.
// Each stream and memory channel gains one cycle here and one on the other side of the boundary.

module via_slot
  import via_pkg::*;
(
  input  logic clk_i,
  input  logic rst_ni,
  // A port the app does not declare, and the part of an address above VaW, are not read.
  /* verilator lint_off UNUSEDSIGNAL */
  input  logic [NumStreams-1:0]       s_valid_i,
  output logic [NumStreams-1:0]       s_ready_o,
  input  logic [NumStreams*DataW-1:0] s_data_i,
  input  logic [NumStreams*StrbW-1:0] s_keep_i,
  input  logic [NumStreams-1:0]       s_last_i,
  input  logic [NumStreams*8-1:0]     s_id_i,
  output logic [NumStreams-1:0]       m_valid_o,
  input  logic [NumStreams-1:0]       m_ready_i,
  output logic [NumStreams*DataW-1:0] m_data_o,
  output logic [NumStreams*StrbW-1:0] m_keep_o,
  output logic [NumStreams-1:0]       m_last_o,
  output logic [NumStreams*8-1:0]     m_id_o,
  output logic [5:0]       arid_o,
  output logic [VaW-1:0]   araddr_o,
  output logic [7:0]       arlen_o,
  output logic [2:0]       arsize_o,
  output logic [1:0]       arburst_o,
  output logic             arvalid_o,
  input  logic             arready_i,
  input  logic [5:0]       rid_i,
  input  logic [DataW-1:0] rdata_i,
  input  logic [1:0]       rresp_i,
  input  logic             rlast_i,
  input  logic             rvalid_i,
  output logic             rready_o,
  output logic [5:0]       awid_o,
  output logic [VaW-1:0]   awaddr_o,
  output logic [7:0]       awlen_o,
  output logic [2:0]       awsize_o,
  output logic [1:0]       awburst_o,
  output logic             awvalid_o,
  input  logic             awready_i,
  output logic [DataW-1:0] wdata_o,
  output logic [StrbW-1:0] wstrb_o,
  output logic             wlast_o,
  output logic             wvalid_o,
  input  logic             wready_i,
  input  logic [5:0]       bid_i,
  input  logic [1:0]       bresp_i,
  input  logic             bvalid_i,
  output logic             bready_o,
  input  logic             reg_valid_i,
  input  logic             reg_write_i,
  input  logic [11:0]      reg_addr_i,
  input  logic [31:0]      reg_wdata_i,
  /* verilator lint_on UNUSEDSIGNAL */
  output logic             reg_rvalid_o,
  output logic [31:0]      reg_rdata_o,
  output logic             reg_err_o,
  output logic             irq_o,
  output logic             busy_o
);

{% set needed = [stream_in|length, stream_out|length]|max %}
{% if needed > 1 %}
  if (NumStreams < {{ needed }}) begin : gen_check
    $error("app {{ name }} has {{ needed }} streams in one direction, this card has %0d", NumStreams);
  end

{% endif %}
{% if data_width %}
  if (!(DataW inside { {{- data_width|join(", ") -}} })) begin : gen_check_width
    $error("app {{ name }} is for cards with a data width of {{ data_width|join(" or ") }}, not %0d", DataW);
  end

{% endif %}
  // A handshake on the app's side of the boundary.
  logic active;

{% for s in stream_in %}
  // ---------------------------------------------------------------- stream in {{ loop.index0 }}: {{ s }}
  strm_t app_{{ s }};
  logic app_{{ s }}_valid, app_{{ s }}_ready;

  via_slice #(
    .T(strm_t)
  ) u_in_{{ s }} (
    .clk_i,
    .rst_ni,
    .s_i      ({s_id_i[{{ loop.index0 }}*8+:8], s_last_i[{{ loop.index0 }}], s_keep_i[{{ loop.index0 }}*StrbW+:StrbW], s_data_i[{{ loop.index0 }}*DataW+:DataW]}),
    .s_valid_i(s_valid_i[{{ loop.index0 }}]),
    .s_ready_o(s_ready_o[{{ loop.index0 }}]),
    .m_o      (app_{{ s }}),
    .m_valid_o(app_{{ s }}_valid),
    .m_ready_i(app_{{ s }}_ready)
  );

{% endfor %}
{% if stream_in %}
  if (NumStreams > {{ stream_in|length }}) begin : gen_no_in
    assign s_ready_o[NumStreams-1:{{ stream_in|length }}] = '0;
  end
{% else %}
  assign s_ready_o = '0;
{% endif %}

{% for s in stream_out %}
  // ---------------------------------------------------------------- stream out {{ loop.index0 }}: {{ s }}
  strm_t app_{{ s }};
  logic app_{{ s }}_valid, app_{{ s }}_ready;

  via_slice #(
    .T(strm_t)
  ) u_out_{{ s }} (
    .clk_i,
    .rst_ni,
    .s_i      (app_{{ s }}),
    .s_valid_i(app_{{ s }}_valid),
    .s_ready_o(app_{{ s }}_ready),
    .m_o      ({m_id_o[{{ loop.index0 }}*8+:8], m_last_o[{{ loop.index0 }}], m_keep_o[{{ loop.index0 }}*StrbW+:StrbW], m_data_o[{{ loop.index0 }}*DataW+:DataW]}),
    .m_valid_o(m_valid_o[{{ loop.index0 }}]),
    .m_ready_i(m_ready_i[{{ loop.index0 }}])
  );

{% endfor %}
{% if stream_out %}
  if (NumStreams > {{ stream_out|length }}) begin : gen_no_out
    assign m_valid_o[NumStreams-1:{{ stream_out|length }}] = '0;
    assign m_data_o[NumStreams*DataW-1:{{ stream_out|length }}*DataW] = '0;
    assign m_keep_o[NumStreams*StrbW-1:{{ stream_out|length }}*StrbW] = '0;
    assign m_last_o[NumStreams-1:{{ stream_out|length }}] = '0;
    assign m_id_o[NumStreams*8-1:{{ stream_out|length }}*8] = '0;
  end
{% else %}
  assign {m_valid_o, m_data_o, m_keep_o, m_last_o, m_id_o} = '0;
{% endif %}

{% if memory %}
  // ---------------------------------------------------------------- memory port: {{ memory }}
  axi_ax_t app_{{ memory }}_ar, app_{{ memory }}_aw, ar, aw;
  axi_r_t app_{{ memory }}_r;
  axi_w_t app_{{ memory }}_w;
  axi_b_t app_{{ memory }}_b;
  logic app_{{ memory }}_ar_valid, app_{{ memory }}_ar_ready, app_{{ memory }}_aw_valid, app_{{ memory }}_aw_ready;
  logic app_{{ memory }}_r_valid, app_{{ memory }}_r_ready, app_{{ memory }}_b_valid, app_{{ memory }}_b_ready;
  logic app_{{ memory }}_w_valid, app_{{ memory }}_w_ready;

{% for ch in ["ar", "aw"] %}
  via_slice #(
    .T(axi_ax_t)
  ) u_{{ ch }} (
    .clk_i,
    .rst_ni,
    .s_i      (app_{{ memory }}_{{ ch }}),
    .s_valid_i(app_{{ memory }}_{{ ch }}_valid),
    .s_ready_o(app_{{ memory }}_{{ ch }}_ready),
    .m_o      ({{ ch }}),
    .m_valid_o({{ ch }}valid_o),
    .m_ready_i({{ ch }}ready_i)
  );
  assign {{ ch }}id_o    = {{ ch }}.id;
  assign {{ ch }}addr_o  = {{ ch }}.addr[VaW-1:0];
  assign {{ ch }}len_o   = {{ ch }}.len;
  assign {{ ch }}size_o  = {{ ch }}.size;
  assign {{ ch }}burst_o = {{ ch }}.burst;

{% endfor %}
  logic unused_high;
  assign unused_high = ^{ar.addr[AddrW-1:VaW], aw.addr[AddrW-1:VaW]};

  via_slice #(
    .T(axi_w_t)
  ) u_w (
    .clk_i,
    .rst_ni,
    .s_i      (app_{{ memory }}_w),
    .s_valid_i(app_{{ memory }}_w_valid),
    .s_ready_o(app_{{ memory }}_w_ready),
    .m_o      ({wlast_o, wstrb_o, wdata_o}),
    .m_valid_o(wvalid_o),
    .m_ready_i(wready_i)
  );
  via_slice #(
    .T(axi_r_t)
  ) u_r (
    .clk_i,
    .rst_ni,
    .s_i      ({rid_i, rresp_i, rlast_i, rdata_i}),
    .s_valid_i(rvalid_i),
    .s_ready_o(rready_o),
    .m_o      (app_{{ memory }}_r),
    .m_valid_o(app_{{ memory }}_r_valid),
    .m_ready_i(app_{{ memory }}_r_ready)
  );
  via_slice #(
    .T(axi_b_t)
  ) u_b (
    .clk_i,
    .rst_ni,
    .s_i      ({bid_i, bresp_i}),
    .s_valid_i(bvalid_i),
    .s_ready_o(bready_o),
    .m_o      (app_{{ memory }}_b),
    .m_valid_o(app_{{ memory }}_b_valid),
    .m_ready_i(app_{{ memory }}_b_ready)
  );
{% else %}
  assign {arid_o, araddr_o, arlen_o, arsize_o, arburst_o, arvalid_o, rready_o} = '0;
  assign {awid_o, awaddr_o, awlen_o, awsize_o, awburst_o, awvalid_o} = '0;
  assign {wdata_o, wstrb_o, wlast_o, wvalid_o, bready_o} = '0;
{% endif %}

  // ---------------------------------------------------------------- registers
{% for r in registers %}
  {{ r.wire }} app_{{ r.name }};
{% if r.strobe %}
  logic app_{{ r.name }}_we;
{% endif %}
{% endfor %}
  via_app_regs u_regs (
    .clk_i,
    .rst_ni,
    .reg_valid_i,
    .reg_write_i,
    .reg_addr_i,
    .reg_wdata_i,
    .reg_rvalid_o,
    .reg_rdata_o,
{% for r in registers %}
    .{{ r.name }}_{{ "i" if r.access == "ro" else "o" }}(app_{{ r.name }}),
{% if r.strobe %}
    .{{ r.name }}_we_o(app_{{ r.name }}_we),
{% endif %}
{% endfor %}
    .reg_err_o
  );

  // ---------------------------------------------------------------- busy, interrupt
  // Whatever happened in the last 64 cycles may still be in the app's pipeline; longer computations are told by the app.
  logic [5:0] linger_q;
{% if busy %}
  logic app_busy;
{% endif %}
{% if irq %}
  logic app_irq;
{% endif %}
  assign active = reg_valid_i
{%- for s in stream_in + stream_out %} || app_{{ s }}_valid && app_{{ s }}_ready{% endfor %}
{%- if memory %}{% for ch in ["ar", "r", "aw", "w", "b"] %} || app_{{ memory }}_{{ ch }}_valid && app_{{ memory }}_{{ ch }}_ready{% endfor %}{% endif %};
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      linger_q <= '0;
      busy_o   <= 1'b0;
    end else begin
      if (active) linger_q <= '1;
      else if (linger_q != '0) linger_q <= linger_q - 1'b1;
      busy_o <= active || linger_q != '0{{ " || app_busy" if busy }};
    end
  end
{% if irq %}
  always_ff @(posedge clk_i) irq_o <= rst_ni && app_irq;
{% else %}
  assign irq_o = 1'b0;
{% endif %}

  // ---------------------------------------------------------------- the app
  {{ top }} u_app (
    .clk_i,
{% for s in stream_in %}
    .{{ s }}_i(app_{{ s }}),
    .{{ s }}_valid_i(app_{{ s }}_valid),
    .{{ s }}_ready_o(app_{{ s }}_ready),
{% endfor %}
{% for s in stream_out %}
    .{{ s }}_o(app_{{ s }}),
    .{{ s }}_valid_o(app_{{ s }}_valid),
    .{{ s }}_ready_i(app_{{ s }}_ready),
{% endfor %}
{% if memory %}
{% for ch, out in [["ar", true], ["r", false], ["aw", true], ["w", true], ["b", false]] %}
    .{{ memory }}_{{ ch }}_{{ "o" if out else "i" }}(app_{{ memory }}_{{ ch }}),
    .{{ memory }}_{{ ch }}_valid_{{ "o" if out else "i" }}(app_{{ memory }}_{{ ch }}_valid),
    .{{ memory }}_{{ ch }}_ready_{{ "i" if out else "o" }}(app_{{ memory }}_{{ ch }}_ready),
{% endfor %}
{% endif %}
{% for r in registers %}
    .{{ r.name }}_{{ "o" if r.access == "ro" else "i" }}(app_{{ r.name }}),
{% if r.strobe %}
    .{{ r.name }}_we_i(app_{{ r.name }}_we),
{% endif %}
{% endfor %}
{% if busy %}
    .busy_o(app_busy),
{% endif %}
{% if irq %}
    .irq_o(app_irq),
{% endif %}
    .rst_ni
  );

endmodule
