// SPDX-License-Identifier: Apache-2.0
//
// Moves the data of the disk's requests: from the store or the guest, through the user side if the request says so, to the guest or the
// store.
// Two stages, each in the order of the requests: `send` moves a request's bytes to the user side (or past it), `receive` takes the same
// number of bytes from there. Reads of the store begin when a request is accepted, so that the latencies of several overlap.
// With `header` a message to the user side begins with BlkUserHeader bytes: the number of its first sector, bit 63 set for a write to the
// store, the rest zero. As many bytes are removed from the reply, without being checked.
// Throughput: one beat a cycle, both directions together, plus those of the header. Latency: that of the store and four cycles, with the
// user side five. Order: kept.
// Misuse: a read that fails continues with zeros in place of the missing data, so that the framing of the user side is preserved. A message
// that comes back with the wrong length ends its request with an error: if it is short, what is missing is zero in a read and is not
// written in a write; if it is long, the rest is dropped. Each op with data has one result.

module via_vdev_blk_data
  import via_pkg::*;
  import via_virtio_pkg::*;
  import via_vdev_pkg::*;
#(
  parameter int unsigned Window = 16  // ops in flight: no more than a mover's queue
) (
  input  logic     clk_i,
  input  logic     rst_ni,
  // Ops with data; never more than Window whose result was not accepted.
  input  blk_op_t  op_i,            // next op
  input  logic     op_valid_i,
  output logic     op_ready_o,
  input  vq_beat_t pay_i,           // data of the op accepted last, a write
  input  logic     pay_valid_i,
  output logic     pay_ready_o,
  output vq_beat_t data_o,          // data of reads, `last` at the end of each
  output logic     data_valid_o,
  input  logic     data_ready_i,
  output logic     result_err_o,    // result of the oldest op: it failed
  output logic     result_valid_o,
  input  logic     result_ready_i,
  output strm_t    tx_o,
  output logic     tx_valid_o,
  input  logic     tx_ready_i,
  input  strm_t    rx_i,
  input  logic     rx_valid_i,
  output logic     rx_ready_o,
  output axi_ax_t  m_ar_o,
  output logic     m_ar_valid_o,
  input  logic     m_ar_ready_i,
  input  axi_r_t   m_r_i,
  input  logic     m_r_valid_i,
  output logic     m_r_ready_o,
  output axi_ax_t  m_aw_o,
  output logic     m_aw_valid_o,
  input  logic     m_aw_ready_i,
  output axi_w_t   m_w_o,
  output logic     m_w_valid_o,
  input  logic     m_w_ready_i,
  input  axi_b_t   m_b_i,
  input  logic     m_b_valid_i,
  output logic     m_b_ready_o,
  output logic     moving_o,        // level: something moves
  output logic     idle_o           // level: no op is in flight
);

  localparam bit WindowOk = param_in("via_vdev_blk_data Window", Window, 1, 16);
  // The first beat of a request is never its last.
  localparam bit BeatOk = param_in("VIA_DATA_W of via_vdev_blk_data", DataW, 64, 2048);

  // Ops in progress are held in registers.
  typedef struct packed {
    logic        is_read;
    logic        is_write;  // neither: zeros to the store
    logic        app;
    logic        header;
    logic [39:0] sector;
    logic [31:0] len;
    logic [63:0] addr;
  } job_t;
  job_t job, send, recv;
  logic send_room, send_valid, send_pop, recv_room, recv_valid, recv_pop, in_ready, take;
  assign job = '{
          is_read: op_i.kind == BlkRead,
          is_write: op_i.kind == BlkWrite,
          app: op_i.app,
          header: op_i.app && op_i.header,
          sector: op_i.sector,
          len: op_i.len,
          addr: op_i.addr
      };
  assign op_ready_o = send_room && recv_room && in_ready;
  assign take = op_valid_i && op_ready_o;

  via_vq_fifo #(
    .T    (job_t),
    .Depth(Window),
    .Ram  (1'b0)
  ) u_send (
    .clk_i,
    .rst_ni,
    .s_i      (job),
    .s_valid_i(take),
    .s_ready_o(send_room),
    .m_o      (send),
    .m_valid_o(send_valid),
    .m_ready_i(send_pop),
    .count_o  (),
    .hidden_o ()
  );
  via_vq_fifo #(
    .T    (job_t),
    .Depth(Window),
    .Ram  (1'b0)
  ) u_recv (
    .clk_i,
    .rst_ni,
    .s_i      (job),
    .s_valid_i(take),
    .s_ready_o(recv_room),
    .m_o      (recv),
    .m_valid_o(recv_valid),
    .m_ready_i(recv_pop),
    .count_o  (),
    .hidden_o ()
  );

  // ---------------------------------------------------------------- reads of the store
  cmd_t  in_cmd;
  cpl_t  in_cpl;
  strm_t in_beat;
  logic in_cpl_valid, in_cpl_pop, in_valid, in_take, in_still, in_idle;
  logic [7:0] issue_q, seq_q;  // reads begun; reads sent: the number of the current one
  always_comb begin
    in_cmd       = '0;
    in_cmd.op    = OpMoveIn;
    in_cmd.flags = 8'(1 << FlagEop);
    in_cmd.id    = issue_q;
    in_cmd.tag   = 32'(issue_q);
    in_cmd.addr0 = op_i.addr;
    in_cmd.len   = op_i.len;
  end
  via_mover_in u_in (
    .clk_i,
    .rst_ni,
    .cmd_i       (in_cmd),
    .cmd_valid_i (take && job.is_read),
    .cmd_ready_o (in_ready),
    .cpl_o       (in_cpl),
    .cpl_valid_o (in_cpl_valid),
    .cpl_ready_i (in_cpl_pop),
    .m_ar_o,
    .m_ar_valid_o,
    .m_ar_ready_i,
    .m_r_i,
    .m_r_valid_i,
    .m_r_ready_o,
    .strm_o      (in_beat),
    .strm_valid_o(in_valid),
    .strm_ready_i(in_take),
    .abort_i     (1'b0),
    .still_o     (in_still),
    .idle_o      (in_idle)
  );

  // ---------------------------------------------------------------- send
  logic [31:0] send_left_q, send_left, sent_q;  // bytes of the request still to be sent; sent
  logic send_first_q, send_last_q, send_last, send_ok, send_beat, lost_q, out_valid, out_ready, fault_room;
  logic [DataW-1:0] send_data;
  // The header is sent first.
  localparam int unsigned HeadBeats = BlkUserHeader / StrbW;
  logic [3:0] head_q;  // beats of it sent
  logic head, headed_q;  // headed_q: all of them are sent
  assign head = send.header && !headed_q;
  assign send_left = send_first_q ? send.len : send_left_q;
  assign send_last = send_last_q;
  // The completion says how many bytes of a failed read came; beats of the next read carry another number. This holds until the end of the
  // read; as no beat of it comes any more, it may be noticed a cycle late.
  always_ff @(posedge clk_i) begin
    if (!rst_ni || send_pop) lost_q <= 1'b0;
    else if (send_valid && in_cpl_valid && in_cpl.tag[7:0] == seq_q && in_cpl.status != StOk && in_cpl.bytes <= sent_q) lost_q <= 1'b1;
  end
  always_comb begin
    send_ok   = 1'b1;
    send_data = '0;
    if (head) send_data = (head_q == '0) ? DataW'({!send.is_read, 23'h0, send.sector}) : '0;
    else if (send.is_read) begin
      send_ok = lost_q || in_valid && in_beat.id == seq_q;
      if (!lost_q) send_data = in_beat.data;
    end else if (send.is_write) begin
      send_ok   = pay_valid_i;
      send_data = pay_i.data;
    end
  end
  assign out_valid = send_valid && send_ok && fault_room;
  assign send_beat = out_valid && out_ready && !head;
  assign send_pop = send_beat && send_last;
  assign in_take = send_beat && send.is_read && !lost_q;
  assign pay_ready_o = send_beat && send.is_write;
  // The completion of a read that was sent in full gives no new information.
  assign in_cpl_pop = in_cpl_valid && (in_cpl.tag[7:0] != seq_q || send_pop && send.is_read);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      issue_q      <= '0;
      seq_q        <= '0;
      send_first_q <= 1'b1;
      send_last_q  <= 1'b0;
      head_q       <= '0;
      headed_q     <= 1'b0;
    end else begin
      if (take && job.is_read) issue_q <= issue_q + 1'b1;
      if (send_pop && send.is_read) seq_q <= seq_q + 1'b1;
      // The first beat is never the last.
      if (send_beat) begin
        send_first_q <= send_last_q;
        send_last_q  <= !send_last_q && send_left <= 32'(2 * StrbW);
      end
      if (send_pop) begin
        head_q   <= '0;
        headed_q <= 1'b0;
      end else if (out_valid && out_ready && head) begin
        head_q   <= head_q + 1'b1;
        headed_q <= 32'(head_q) == HeadBeats - 1;
      end
    end
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni || send_pop) sent_q <= '0;
    else if (send_beat) sent_q <= sent_q + 32'(StrbW);
  end
  always_ff @(posedge clk_i) begin
    if (send_beat) send_left_q <= send_left - 32'(StrbW);
  end

  logic fault, fault_valid;  // the request at `recv` could not be read; all of it is sent
  via_fifo #(
    .T    (logic),
    .Depth(Window)
  ) u_faults (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (send.is_read && lost_q),
    .s_valid_i(send_pop),
    .s_ready_o(fault_room),
    .m_o      (fault),
    .m_valid_o(fault_valid),
    .m_ready_i(recv_pop),
    .count_o  ()
  );

  // Beats that arrive at the receiving stage; `full` is computed on arrival.
  typedef struct packed {
    logic             last;
    logic             full;
    logic [StrbW-1:0] keep;
    logic [DataW-1:0] data;
  } back_t;
  typedef struct packed {
    logic             last;
    logic [DataW-1:0] data;
  } past_t;
  strm_t out;
  past_t past;
  logic past_valid, past_ready, past_room, tx_room;
  assign out = '{id: '0, last: send_last && !head, keep: '1, data: send_data};
  assign out_ready = send.app ? tx_room : past_room;
  via_slice #(
    .T(strm_t)
  ) u_tx (
    .clk_i,
    .rst_ni,
    .s_i      (out),
    .s_valid_i(out_valid && send.app),
    .s_ready_o(tx_room),
    .m_o      (tx_o),
    .m_valid_o(tx_valid_o),
    .m_ready_i(tx_ready_i)
  );
  via_slice #(
    .T(past_t)
  ) u_past (
    .clk_i,
    .rst_ni,
    .s_i      ('{last: out.last, data: out.data}),
    .s_valid_i(out_valid && !send.app),
    .s_ready_o(past_room),
    .m_o      (past),
    .m_valid_o(past_valid),
    .m_ready_i(past_ready)
  );

  // ---------------------------------------------------------------- receive
  typedef enum logic [1:0] {
    StFlow,  // forward the message
    StPad,   // the message was short: append zeros
    StDrop   // the message is too long: drop the rest
  } state_e;
  state_e state_q;
  back_t back, rx;
  logic rx_valid, rx_ready;
  via_slice #(
    .T(back_t)
  ) u_rx (
    .clk_i,
    .rst_ni,
    .s_i      ('{last: rx_i.last, full: &rx_i.keep, keep: rx_i.keep, data: rx_i.data}),
    .s_valid_i(rx_valid_i),
    .s_ready_o(rx_ready_o),
    .m_o      (rx),
    .m_valid_o(rx_valid),
    .m_ready_i(rx_ready)
  );
  logic [3:0] recv_head_q;  // beats of the header received
  logic head_now, recv_headed_q, back_valid, back_take, is_read, recv_first_q, recv_last_q, recv_last, short_now, long_now, err_q, wrong;
  logic dest_ready, result_room, go, skip, skip_q;
  logic [31:0] recv_left_q, recv_left;
  assign back = recv.app ? rx : '{last: past.last, full: 1'b1, keep: '1, data: past.data};
  assign back_valid = recv_valid && (recv.app ? rx_valid : past_valid);
  assign is_read = recv.is_read;
  assign recv_left = recv_first_q ? recv.len : recv_left_q;
  assign recv_last = recv_last_q;
  assign head_now = recv.header && !recv_headed_q;
  assign short_now = back.last && (head_now || !recv_last || !back.full);
  assign long_now = recv_last && !back.last && !head_now;
  // Of a message that ends within its first beat nothing is written.
  assign skip = !is_read && (recv_first_q ? short_now : skip_q);

  // The write to the store is started when the first of its bytes has arrived.
  logic cmd_now, cmd_sent_q, out_cmd_ready, to_store, store_ready, store_idle, store_still;
  assign cmd_now = back_valid && state_q == StFlow && !is_read && !head_now && !skip && !cmd_sent_q;
  assign to_store = back_valid && state_q == StFlow && !is_read && !head_now && !skip && cmd_sent_q && go;

  // An op does not end before all of it is sent, whatever the user side does.
  assign go = result_room && (fault_valid || !((state_q == StPad) ? recv_last : back.last));
  assign dest_ready = state_q == StDrop || state_q == StFlow && (head_now || (is_read ? data_ready_i : skip || cmd_sent_q && store_ready));
  assign back_take = back_valid && go && dest_ready;
  assign rx_ready = recv_valid && recv.app && go && dest_ready;
  assign past_ready = recv_valid && !recv.app && go && dest_ready;

  assign data_valid_o = recv_valid && is_read && go && (state_q == StPad || state_q == StFlow && back_valid && !head_now);
  always_comb begin
    data_o.last = recv_last;
    data_o.keep = '1;
    data_o.data = (state_q == StPad) ? '0 : back.data;
    if (short_now) begin
      for (int unsigned i = 0; i < StrbW; i++) if (!back.keep[i]) data_o.data[8*i+:8] = '0;
    end
  end

  logic beat, pad_now;
  assign beat = back_take && state_q == StFlow && !head_now || data_valid_o && data_ready_i && state_q == StPad;
  assign pad_now = back_take && state_q == StFlow && short_now && is_read && (head_now || !recv_last);
  assign wrong = err_q || state_q == StFlow && short_now;
  always_comb begin
    unique case (state_q)
      StFlow:  recv_pop = back_take && back.last && !pad_now;
      StPad:   recv_pop = beat && recv_last;
      default: recv_pop = back_take && back.last;
    endcase
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q       <= StFlow;
      recv_first_q  <= 1'b1;
      recv_last_q   <= 1'b0;
      recv_head_q   <= '0;
      recv_headed_q <= 1'b0;
      cmd_sent_q    <= 1'b0;
      err_q         <= 1'b0;
    end else begin
      if (recv_pop) cmd_sent_q <= 1'b0;
      else if (cmd_now && out_cmd_ready) cmd_sent_q <= 1'b1;
      // The first beat is never the last.
      if (recv_pop) begin
        recv_first_q <= 1'b1;
        recv_last_q  <= 1'b0;
      end else if (beat) begin
        recv_first_q <= 1'b0;
        recv_last_q  <= recv_left <= 32'(2 * StrbW);
      end
      if (recv_pop) begin
        recv_head_q   <= '0;
        recv_headed_q <= 1'b0;
      end else if (back_take && head_now) begin
        recv_head_q   <= recv_head_q + 1'b1;
        recv_headed_q <= 32'(recv_head_q) == HeadBeats - 1;
      end
      if (recv_pop) err_q <= 1'b0;
      else if (pad_now || beat && long_now && state_q == StFlow) err_q <= 1'b1;
      if (recv_pop) state_q <= StFlow;
      else if (pad_now) state_q <= StPad;
      else if (back_take && long_now && state_q == StFlow) state_q <= StDrop;
    end
  end
  always_ff @(posedge clk_i) begin
    if (beat) recv_left_q <= recv_left - 32'(StrbW);
    if (beat && recv_first_q) skip_q <= skip;
  end

  // ---------------------------------------------------------------- writes to the store
  cmd_t  out_cmd;
  cpl_t  out_cpl;
  strm_t store;
  logic out_cpl_valid, out_cpl_pop;
  always_comb begin
    out_cmd       = '0;
    out_cmd.op    = OpMoveOut;
    out_cmd.addr0 = recv.addr;
    out_cmd.len   = recv.len;
    store         = '{id: '0, last: recv_last || back.last, keep: back.keep, data: back.data};
  end
  via_mover_out u_out (
    .clk_i,
    .rst_ni,
    .cmd_i       (out_cmd),
    .cmd_valid_i (cmd_now),
    .cmd_ready_o (out_cmd_ready),
    .cpl_o       (out_cpl),
    .cpl_valid_o (out_cpl_valid),
    .cpl_ready_i (out_cpl_pop),
    .m_aw_o,
    .m_aw_valid_o,
    .m_aw_ready_i,
    .m_w_o,
    .m_w_valid_o,
    .m_w_ready_i,
    .m_b_i,
    .m_b_valid_i,
    .m_b_ready_o,
    .strm_i      (store),
    .strm_valid_i(to_store),
    .strm_ready_o(store_ready),
    .abort_i     (1'b0),
    .still_o     (store_still),
    .idle_o      (store_idle)
  );

  // ---------------------------------------------------------------- results
  typedef struct packed {
    logic err;
    logic written;  // the response of the store is outstanding
  } result_t;
  result_t result;
  logic result_held;
  via_vq_fifo #(
    .T    (result_t),
    .Depth(Window)
  ) u_results (
    .clk_i,
    .rst_ni,
    .s_i      ('{err: wrong || fault, written: !is_read && !skip}),
    .s_valid_i(recv_pop),
    .s_ready_o(result_room),
    .m_o      (result),
    .m_valid_o(result_held),
    .m_ready_i(result_valid_o && result_ready_i),
    .count_o  (),
    .hidden_o ()                                                     // not in distributed memory
  );
  assign result_valid_o = result_held && (!result.written || out_cpl_valid);
  assign result_err_o = result.err || result.written && out_cpl.status != StOk;
  assign out_cpl_pop = result_held && result.written && result_ready_i;

  logic in_still_q, in_idle_q, store_still_q, store_idle_q;
  always_ff @(posedge clk_i) begin
    in_still_q <= in_still;
    in_idle_q <= in_idle;
    store_still_q <= store_still;
    store_idle_q <= store_idle;
    moving_o      <= take || out_valid && out_ready || in_cpl_pop || tx_valid_o && tx_ready_i || rx_valid_i && rx_ready_o || beat || back_take ||
                     result_valid_o || cmd_now || !in_still_q || !store_still_q;
  end
  assign idle_o = !send_valid && !recv_valid && !result_held && in_idle_q && store_idle_q && !tx_valid_o && !rx_valid;

endmodule
