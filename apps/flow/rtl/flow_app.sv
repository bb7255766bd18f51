// SPDX-License-Identifier: Apache-2.0
//
// Optical flow: how far each pixel of the middle one of five frames moves until the next. A message is the frames, pixel by pixel from the
// upper left, 8 bytes each, `width` in a line; so is what it gives.
//
//   beat -> groups of four pixels, and what is behind the image -> flow_pipe -> beats -> FIFO -> out
//
// Throughput: four pixels a cycle, half a beat of 512 bits; behind each image six lines in which the next one waits. Latency: these, and
// about 60 cycles. Order: kept. A last line that ends early is continued with what is outside of the image. `width` is sampled with the
// first beat. Misuse: an image for which `width` is not a multiple of 8 from 16 to 4 * MaxLine gives as many zeros, and counts as an error.

module flow_app
  import via_pkg::*;
  import flow_pkg::*;
#(
  parameter int unsigned MaxLine = 2048  // groups of a line, a power of two; twelve lines of values are held in block memory
) (
  input  logic         clk_i,
  input  logic         rst_ni,
  input  strm_t        in_i,
  input  logic         in_valid_i,
  output logic         in_ready_o,
  output strm_t        out_o,
  output logic         out_valid_o,
  input  logic         out_ready_i,
  input  logic  [31:0] width_i,      // pixels of a line
  output logic  [31:0] errors_o,     // images for which width_i was wrong
  output logic         busy_o        // level: it goes on without beats
);

  localparam bit DataWOk = param_in("VIA_DATA_W of flow_app", DataW, 256, 512);
  localparam bit MaxLineOk = param_pow2("flow_app MaxLine", MaxLine, 8, 1 << 16);

  localparam int unsigned Groups = DataW / 256;  // of a beat
  localparam int unsigned ColW = $clog2(MaxLine);
  localparam int unsigned Below = 6;  // lines behind an image that its last one depends on
  localparam int unsigned Room = 16;  // beats

  typedef enum logic [1:0] {
    Start,  // an image is awaited; what is behind the last one goes on until all of it is out
    Body,   // its groups come
    Fill,   // up to the end of the line
    Tail    // lines below the image
  } state_e;

  typedef struct packed {
    logic last;
    logic [DataW-1:0] data;
  } beat_t;

  // ---------------------------------------------------------------- groups
  state_e state_q;
  strm_t  beat_q;
  logic beat_valid_q, half_q;  // half_q: the second group of a beat is next
  logic [ColW-1:0] col_q, end_q;
  logic [2:0] row_q, tail_q;
  logic [17:0] pending_q;  // groups of images that are in the pipeline
  logic bad, bad_q, en, room_q, body, beat_end, line_end, ids_ready;
  tag_t tag, out_tag;
  logic [Pixels-1:0][4:0][7:0] pixels;
  logic [Pixels-1:0][1:0][15:0] moves;
  logic [255:0] data;
  logic [31:0] keep;
  logic out_push, begin_image;

  assign bad = width_i[2:0] != '0 || width_i < 32'd16 || width_i > 32'(4 * MaxLine);
  assign body = state_q == Body;
  assign begin_image = state_q == Start && beat_valid_q && ids_ready;
  assign line_end = col_q == end_q;
  assign {data, keep} = Groups > 1 && half_q ? {beat_q.data[DataW-1-:256], beat_q.keep[StrbW-1-:32]} : {beat_q.data[255:0], beat_q.keep[31:0]};
  // The last beat may end with its first group.
  assign beat_end = Groups == 1 || half_q || beat_q.last && !beat_q.keep[StrbW/2];
  assign en = room_q && (body ? beat_valid_q : state_q != Start || !beat_valid_q && pending_q != '0);
  assign in_ready_o = !beat_valid_q || en && body && beat_end;

  always_comb begin
    tag = '{valid: '0, first: col_q == '0, last: line_end, row: row_q, close: body && beat_q.last && beat_end};
    pixels = '0;
    for (int unsigned p = 0; p < Pixels; p++) begin
      tag.valid[p] = body && keep[8*p];
      for (int unsigned f = 0; f < 5; f++) if (body && keep[8*p+f] && !bad_q) pixels[p][f] = data[64*p+8*f+:8];
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q      <= Start;
      beat_valid_q <= 1'b0;
      half_q       <= 1'b0;
      pending_q    <= '0;
      errors_o     <= '0;
      busy_o       <= 1'b0;
    end else begin
      if (in_ready_o) beat_valid_q <= in_valid_i;
      if (en && body) half_q <= !beat_end;
      unique case (state_q)
        Start: if (begin_image) state_q <= Body;
        Body:  if (en && beat_q.last && beat_end) state_q <= line_end ? Tail : Fill;
        Fill:  if (en && line_end) state_q <= Tail;
        Tail:  if (en && line_end && tail_q == 3'd1) state_q <= Start;
      endcase
      if ((en && body) != out_push) pending_q <= out_push ? pending_q - 1'b1 : pending_q + 1'b1;
      if (begin_image && bad) errors_o <= errors_o + 1'b1;
      busy_o <= en && !body;
    end
    if (in_ready_o) beat_q <= in_i;
    if (begin_image) begin
      end_q <= bad ? ColW'(15) : ColW'((width_i >> 2) - 32'd1);
      bad_q <= bad;
      col_q <= '0;
      row_q <= '0;
    end else if (en) begin
      col_q <= line_end ? '0 : col_q + 1'b1;
      if (line_end && row_q != '1) row_q <= row_q + 1'b1;
    end
    if (state_q != Tail) tail_q <= 3'(Below);
    else if (en && line_end) tail_q <= tail_q - 1'b1;
  end

  flow_pipe #(
    .MaxLine(MaxLine)
  ) u_pipe (
    .clk_i,
    .rst_ni,
    .en_i (en),
    .tag_i(tag),
    .s_i  (pixels),
    .tag_o(out_tag),
    .m_o  (moves)
  );

  // ---------------------------------------------------------------- beats
  logic out_half_q, beat_push_q, out_valid;
  beat_t out_beat_q, out_beat;
  logic [255:0] out_data;
  logic [7:0] id;
  logic [StrbW-1:0] last_keep;
  logic [$clog2(Room+1)-1:0] count;

  assign out_push = en && out_tag.valid[0];

  for (genvar p = 0; p < int'(Pixels); p++) begin : gen_out
    assign out_data[64*p+:64] = {{16{moves[p][1][15]}}, moves[p][1], {16{moves[p][0][15]}}, moves[p][0]};
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      out_half_q  <= 1'b0;
      beat_push_q <= 1'b0;
    end else begin
      if (out_push) out_half_q <= Groups > 1 && !out_half_q && !out_tag.close;
      beat_push_q <= out_push && (Groups == 1 || out_half_q || out_tag.close);
    end
    if (out_push) begin
      out_beat_q.last <= out_tag.close;
      if (out_half_q) out_beat_q.data[DataW-1-:256] <= out_data;
      else out_beat_q.data[255:0] <= out_data;
    end
    room_q <= 32'(count) < Room - 4;
  end

  via_fifo #(
    .T    (beat_t),
    .Depth(Room)
  ) u_out (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (out_beat_q),
    .s_valid_i(beat_push_q),
    .s_ready_o(),
    .m_o      (out_beat),
    .m_valid_o(out_valid),
    .m_ready_i(out_ready_i),
    .count_o  (count)
  );

  // Of the images in the pipeline: stream id, and what of the last beat is theirs.
  logic image_out;
  assign image_out = out_valid && out_ready_i && out_beat.last;

  via_fifo #(
    .T    (logic [7:0]),
    .Depth(16)
  ) u_ids (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (beat_q.id),
    .s_valid_i(begin_image),
    .s_ready_o(ids_ready),
    .m_o      (id),
    .m_valid_o(),
    .m_ready_i(image_out),
    .count_o  ()
  );
  via_fifo #(
    .T    (logic [StrbW-1:0]),
    .Depth(16)
  ) u_keeps (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (beat_q.keep),
    .s_valid_i(en && tag.close),
    .s_ready_o(),
    .m_o      (last_keep),
    .m_valid_o(),
    .m_ready_i(image_out),
    .count_o  ()
  );

  assign out_valid_o = out_valid;
  assign out_o = '{id: id, last: out_beat.last, keep: out_beat.last ? last_keep : '1, data: out_beat.data};

endmodule
