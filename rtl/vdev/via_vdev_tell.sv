// SPDX-License-Identifier: Apache-2.0
//
// Sends what the driver transmits to the user side: the readable bytes of a request become one message, and the request completes with no
// bytes when its last one is accepted. A request without bytes only completes. A byte at `byte_i` becomes a message of its own, between two
// others.
// Throughput: one beat a cycle. Latency: one cycle. Order: kept. `drop_i` is sampled at the beginning of a message. Misuse: none is
// possible.

module via_vdev_tell
  import via_pkg::*;
  import via_virtio_pkg::*;
(
  input  logic           clk_i,
  input  logic           rst_ni,
  input  logic           drop_i,        // level: messages are not sent
  input  logic     [7:0] id_i,          // id of the message, with req_valid_i
  input  logic     [7:0] byte_i,        // byte to send, with id 0
  input  logic           byte_valid_i,
  output logic           byte_ready_o,
  input  vq_req_t        req_i,         // request
  input  logic           none_i,        // with req_i: it has no readable bytes
  input  logic           req_valid_i,
  output logic           req_ready_o,
  input  vq_beat_t       rd_i,          // its bytes
  input  logic           rd_valid_i,
  output logic           rd_ready_o,
  output vq_rsp_t        rsp_o,         // response
  output logic           rsp_valid_o,
  input  logic           rsp_ready_i,
  output strm_t          tx_o,
  output logic           tx_valid_o,
  input  logic           tx_ready_i,
  output logic           moving_o,      // level: something moves
  output logic           idle_o         // level: nothing is held
);

  logic ends, take, drop, first_q, drop_q, done_room, tx_room;
  assign drop = first_q ? drop_i : drop_q;
  assign rd_ready_o = req_valid_i && !none_i && done_room && (drop || tx_room && !(first_q && byte_valid_i));
  assign take = rd_valid_i && rd_ready_o;
  assign ends = req_valid_i && none_i && done_room || take && rd_i.last;
  assign req_ready_o = ends;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) first_q <= 1'b1;
    else if (take) first_q <= rd_i.last;
  end
  always_ff @(posedge clk_i) begin
    if (take && first_q) drop_q <= drop_i;
  end

  assign byte_ready_o = byte_valid_i && tx_room && (first_q || drop_q);
  strm_t s;
  assign s = byte_ready_o ? '{id: '0, last: 1'b1, keep: StrbW'(1), data: DataW'(byte_i)} : {id_i, rd_i};

  via_slice #(
    .T(strm_t)
  ) u_tx (
    .clk_i,
    .rst_ni,
    .s_i      (s),
    .s_valid_i(byte_ready_o || take && !drop),
    .s_ready_o(tx_room),
    .m_o      (tx_o),
    .m_valid_o(tx_valid_o),
    .m_ready_i(tx_ready_i)
  );

  logic [QueueW-1:0] queue;
  via_fifo #(
    .T    (logic [QueueW-1:0]),
    .Depth(4)
  ) u_done (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (req_i.queue),
    .s_valid_i(ends),
    .s_ready_o(done_room),
    .m_o      (queue),
    .m_valid_o(rsp_valid_o),
    .m_ready_i(rsp_ready_i),
    .count_o  ()
  );
  assign rsp_o = '{queue: queue, merge: 1'b0, len: '0};

  assign moving_o = take || ends || byte_ready_o || tx_valid_o && tx_ready_i;
  assign idle_o = first_q && !tx_valid_o && !rsp_valid_o;

endmodule
