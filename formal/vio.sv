// SPDX-License-Identifier: Apache-2.0
//
// Two via_vio_source and two via_vio_sink, connected as via_vio_switch connects them, without bound: what a sink takes are whole messages of
// one source at a time, and no beat is lost or taken twice, however routes change, sources start over and sinks are cut off.
//
//   a_space      a beat that a sink takes has space there
//   a_first      a source knows where its messages begin, also after it has started over
//   a_begin      a sink takes messages from their beginning on
//   a_one        a beat within a message comes from the source that began it, and begins no other
//   a_taken      a beat that is sent is taken, once, by every sink that takes its source, unless it was not there for the message's beginning
//   a_somewhere  what a source with `Waits` sends is taken by some sink
//   a_right      the beat is that of the source
//   a_end        a message that is cut short is ended before another begins
//   a_short, a_told   a message is cut short only by `now_i` or its source, and that is told
//   a_kept       with `now_i`, or once the sink has left its source, a source sends nothing while it is to be taken and is not yet
//
// Source 1 waits for a sink, source 2 does not. Sources offer and withdraw what they like; that one
// begins anew (`fresh_i`) is assumed only while no sink takes it. That words leave the FIFO as
// they came is proved in fifo.

module vio
  import via_pkg::*;
(
  input logic       clk_i,
  input logic       rst_ni,
  input logic [1:0] want_i   [2],
  input logic [1:0] now_i,
  input logic [1:0] cut_i,
  input logic [1:0] m_ready_i,
  input logic [2:1] s_cut_i,
  input logic [2:1] fresh_i,
  input logic [2:1] s_valid_i,
  input logic [2:1] s_last_i,
  input logic [6:0] s_id_i
);

  localparam logic [1:0] Close = 2'd2;  // of state_e in via_vio_sink
  strm_t s[2], m[2];
  logic [2:1] go, first, ready;
  logic [2:1] takes[2], hold[2], drain[2], shorts[2];

  for (genvar i = 1; i <= 2; i++) begin : gen_source
    assign s[i-1] = '{id: {1'(i - 1), s_id_i}, last: s_last_i[i], keep: '1, data: '0};
    via_vio_source #(
      .N    (2),
      .Waits(i == 1)
    ) u (
      .clk_i,
      .rst_ni,
      .cut_i  (s_cut_i[i]),
      .fresh_i(fresh_i[i]),
      .valid_i(s_valid_i[i]),
      .last_i (s_last_i[i]),
      .ready_o(ready[i]),
      .takes_i({takes[1][i], takes[0][i]}),
      .hold_i ({hold[1][i], hold[0][i]}),
      .drain_i({drain[1][i], drain[0][i]}),
      .go_o   (go[i]),
      .first_o(first[i]),
      .still_o()
    );
  end

  // Within a message, by what was sent.
  logic [2:1] mid_q;
  for (genvar i = 1; i <= 2; i++) begin : gen_first
    always_ff @(posedge clk_i) begin
      mid_q[i] <= rst_ni && !s_cut_i[i] && !fresh_i[i] && (s_valid_i[i] && ready[i] ? !s_last_i[i] : mid_q[i]);
      // The slot drops the rest of a message only when no sink takes the app.
      assume (!fresh_i[i] || !takes[0][i] && !takes[1][i]);
      if (rst_ni) a_first : assert (first[i] == !mid_q[i]);
    end
  end

  // Two cycles of reset: the select of a multiplexer follows a cycle later.
  logic [1:0] begun_q = 2'b0;
  always_ff @(posedge clk_i) begin
    begun_q <= {begun_q[0], 1'b1};
    assume (rst_ni == begun_q[1]);
  end

  for (genvar j = 0; j < 2; j++) begin : gen_sink
    via_vio_sink #(
      .N(2)
    ) u (
      .clk_i,
      .rst_ni,
      .want_i   (want_i[j]),
      .now_i    (now_i[j]),
      .cut_i    (cut_i[j]),
      .s_i      (s),
      .go_i     (go),
      .first_i  (first),
      .s_cut_i,
      .takes_o  (takes[j]),
      .hold_o   (hold[j]),
      .drain_o  (drain[j]),
      .short_o  (shorts[j]),
      .on_o     (),
      .pending_o(),
      .m_o      (m[j]),
      .m_valid_o(),
      .m_ready_i(m_ready_i[j]),
      .still_o  (),
      .idle_o   ()
    );

    logic [2:1] owner_q;  // of the message that is open
    logic [2:1] in_q;  // the sink took the beginning of the source's present message, and every beat since
    logic [2:1] wanted_q;
    logic told_q;  // the message that is ended now was cut short, and that was told
    for (genvar i = 1; i <= 2; i++) begin : gen_from
      always_ff @(posedge clk_i) begin
        if (!rst_ni) begin
          owner_q[i] <= 1'b0;
          in_q[i]    <= 1'b0;
          wanted_q[i] <= 1'b0;
        end else begin
          if (u.come && !u.open_q) owner_q[i] <= takes[j][i];
          in_q[i] <= (go[i] ? !s_last_i[i] && (first[i] || in_q[i]) : in_q[i]) && takes[j][i] && !s_cut_i[i] && !cut_i[j];
          a_right : assert (!(u.push && u.come && takes[j][i]) || go[i] && u.entry.id == s[i-1].id && u.entry.last == s_last_i[i]);
          a_taken : assert (!(go[i] && takes[j][i] && (first[i] || in_q[i])) || u.come && (u.push || cut_i[j]));
          a_short : assert (!shorts[j][i] || now_i[j] || s_cut_i[i]);
          wanted_q[i] <= want_i[j] == 2'(i) && (now_i[j] || u.state_q == Close);
          a_kept : assert (!(go[i] && wanted_q[i] && want_i[j] == 2'(i) && (now_i[j] || u.state_q == Close)) || takes[j][i]);
          i_open : assert (!(u.open_q && takes[j][i]) || !first[i] && owner_q[i]);
          i_in : assert (!in_q[i] || !first[i]);
          i_both : assert (!in_q[i] || !takes[j][i] || u.open_q);
        end
      end
    end
    always_ff @(posedge clk_i) begin
      if (rst_ni) begin
        if (shorts[j] != '0) told_q <= 1'b1;
        else if (u.push) told_q <= 1'b0;
        a_told : assert (!(u.state_q == Close && u.open_q) || told_q);
        a_begin : assert (!(u.come && !u.open_q) || (takes[j] & first) != '0);
        a_one : assert (!(u.come && u.open_q) || (takes[j] & first) == '0 && takes[j] == owner_q);
        a_space : assert (!u.push || u.u_fifo.s_ready_o);
        a_end : assert (!(u.open_q && takes[j] == '0) || !u.come && (!u.push || u.entry.last && u.entry.id == u.id_q));
        i_owner : assert ($onehot0(owner_q));
        i_takes : assert ($onehot0(takes[j]) && takes[j] == {u.sel_q == 2'd2, u.sel_q == 2'd1});
        i_mux : assert (u.u_mux.gen_mux.low_q == u.sel_q && u.u_mux.gen_mux.gen_few.group_q == 1'b1);
        i_state : assert (u.state_q != 2'd3 && (u.state_q != Close || takes[j] == '0));
        i_closed : assert (!(u.open_q && takes[j] == '0) || u.state_q == Close);
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      a_somewhere : assert (!go[1] || {takes[1][1], takes[0][1]} != '0);
    end
  end

endmodule
