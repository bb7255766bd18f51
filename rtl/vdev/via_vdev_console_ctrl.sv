// SPDX-License-Identifier: Apache-2.0
//
// Control protocol of the console's ports: receives the driver's messages, and announces to it which ports there are, which is a console
// and how large it is, their names, and that their other end is open. Each pending message is a flag; they are sent one after the other as
// buffers come.
// Throughput: a message in a few cycles (slow path). Order: by port, highest priority first. A buffer too small for a message is completed
// empty, and the message waits for the next one. Misuse: messages from the driver that are too short, of unknown kind or for a port that
// does not exist are ignored. Source: VIRTIO 1.3, 5.3.6.2.

module via_vdev_console_ctrl
  import via_pkg::*;
  import via_virtio_pkg::*;
  import via_vdev_pkg::*;
#(
  parameter logic [QueueW-1:0] Queue = 4'd2,  // receive queue of control
  parameter int unsigned Ports = ConsolePorts
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,
  // Bytes after the end of the message are undefined.
  input  vq_beat_t             msg_i,        // first beat of a message from the driver
  input  logic                 msg_valid_i,
  input  logic                 size_i,       // level: announce the size of port 0
  input  logic     [     15:0] rows_i,       // its size
  input  logic     [     15:0] cols_i,       // its size
  input  logic                 resize_i,     // pulse: the size has changed
  output logic     [Ports-1:0] open_o,       // level: the driver has opened the port
  input  logic                 avail_i,      // level: the queue has a buffer
  input  logic     [     31:0] wlen_i,       // its size in bytes
  output vq_rsp_t              rsp_o,        // response
  output logic                 rsp_valid_o,
  input  logic                 rsp_ready_i,
  output vq_beat_t             wr_o,         // its bytes
  output logic                 wr_valid_o,
  input  logic                 wr_ready_i,
  output logic                 short_o,      // level: a message waits for a buffer
  output logic                 moving_o,     // level: something moves
  output logic                 idle_o        // level: no message waits
);

  localparam bit PortsOk = param_in("via_vdev_console_ctrl Ports", Ports, 1, (QueuesMax - 2) / 2);

  typedef enum logic [15:0] {
    EvReady   = 16'd0,
    EvAdd     = 16'd1,
    EvPortRdy = 16'd3,
    EvConsole = 16'd4,
    EvResize  = 16'd5,
    EvOpen    = 16'd6,
    EvName    = 16'd7
  } event_e;
  typedef struct packed {
    logic [15:0] value;
    logic [15:0] kind;
    logic [31:0] id;
  } control_t;
  localparam int unsigned NameBytes = 9;  // "viaduct.0"
  localparam int unsigned SizeBytes = 4;
  localparam int unsigned MsgBytes = $bits(control_t) / 8 + NameBytes;
  localparam int unsigned MsgW = (MsgBytes + StrbW - 1) / StrbW * DataW;
  localparam int unsigned PortW = (Ports > 1) ? $clog2(Ports) : 1;

  // ---------------------------------------------------------------- messages from the driver
  control_t msg_q;
  logic heard_q, port_ok;
  logic [PortW-1:0] port;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) heard_q <= 1'b0;
    else heard_q <= msg_valid_i && msg_i.keep[$bits(control_t)/8-1];
    msg_q <= msg_i.data[$bits(control_t)-1:0];
  end
  assign port = msg_q.id[PortW-1:0];
  assign port_ok = msg_q.id < Ports;

  logic [Ports-1:0] open_q, add_q, console_q, size_q, name_q, host_open_q;
  logic [Ports-1:0] add_set, tell_set, add_clr, console_clr, size_clr, name_clr, host_open_clr;
  logic told_q;  // port 0 was announced to the driver
  always_comb begin
    add_set  = '0;
    tell_set = '0;
    if (heard_q && msg_q.kind == EvReady && msg_q.value == 16'd1) add_set = '1;
    if (heard_q && msg_q.kind == EvPortRdy && msg_q.value == 16'd1 && port_ok) tell_set[port] = 1'b1;
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      open_q      <= '0;
      add_q       <= '0;
      console_q   <= '0;
      size_q      <= '0;
      told_q      <= 1'b0;
      name_q      <= '0;
      host_open_q <= '0;
    end else begin
      if (heard_q && msg_q.kind == EvOpen && port_ok) open_q[port] <= msg_q.value[0];
      add_q       <= (add_q & ~add_clr) | add_set;
      console_q   <= (console_q & ~console_clr) | (tell_set & Ports'(1));  // port 0
      size_q      <= (size_q & ~size_clr) | Ports'(size_i && (tell_set[0] || told_q && resize_i));
      told_q      <= told_q || tell_set[0];
      name_q      <= (name_q & ~name_clr) | tell_set;
      host_open_q <= (host_open_q & ~host_open_clr) | tell_set;
    end
  end
  assign open_o = open_q;

  // ---------------------------------------------------------------- messages to the driver
  typedef enum logic [1:0] {
    StPick,
    StResponse,  // wait for a buffer
    StOffer,  // the response stays offered whatever becomes of the queue
    StData
  } state_e;
  state_e state_q;
  control_t next, say_q;
  logic some, named, sized, fits_q, sent;
  always_comb begin
    next = '{value: 16'd1, kind: EvAdd, id: '0};
    some = 1'b0;
    // The lowest port comes last, so that it has priority; within one port: console, size, name, open.
    for (int unsigned p = Ports; p > 0; p--) begin
      if (console_q[p-1] || size_q[p-1] || name_q[p-1] || host_open_q[p-1]) begin
        some = 1'b1;
        next.id = 32'(p - 1);
        next.kind = console_q[p-1] ? EvConsole : size_q[p-1] ? EvResize : name_q[p-1] ? EvName : EvOpen;
      end
    end
    for (int unsigned p = Ports; p > 0; p--) begin
      if (add_q[p-1]) begin
        some = 1'b1;
        next.id = 32'(p - 1);
        next.kind = EvAdd;
      end
    end
  end

  logic [31:0] len;
  logic [Ports-1:0] said;
  logic [MsgW-1:0] text_q;
  logic [BeatLog2:0] bytes;
  logic [5:0] left_q;
  assign named = say_q.kind == EvName;
  assign sized = say_q.kind == EvResize;
  assign len = 32'($bits(control_t) / 8 + (named ? NameBytes : sized ? SizeBytes : 0));
  assign rsp_valid_o = state_q == StOffer;
  assign rsp_o = '{queue: Queue, merge: 1'b0, len: fits_q ? len : '0};
  assign sent = rsp_valid_o && rsp_ready_i && fits_q;
  assign said = sent ? Ports'(1) << say_q.id : '0;
  assign add_clr = (say_q.kind == EvAdd) ? said : '0;
  assign console_clr = (say_q.kind == EvConsole) ? said : '0;
  // A flag is cleared when its content is copied into the message; later changes set it again.
  assign size_clr = Ports'(state_q == StResponse && avail_i && wlen_i >= len && sized);
  assign name_clr = (say_q.kind == EvName) ? said : '0;
  assign host_open_clr = (say_q.kind == EvOpen) ? said : '0;

  assign bytes = (32'(left_q) < StrbW) ? (BeatLog2 + 1)'(left_q) : (BeatLog2 + 1)'(StrbW);
  assign wr_valid_o = state_q == StData;
  assign wr_o = '{last: 32'(left_q) <= StrbW, keep: keep_of(bytes), data: text_q[DataW-1:0]};

  always_ff @(posedge clk_i) begin
    if (!rst_ni) state_q <= StPick;
    else begin
      unique case (state_q)
        StPick: if (some) state_q <= StResponse;
        StResponse: if (avail_i) state_q <= StOffer;
        StOffer: if (rsp_ready_i) state_q <= fits_q ? StData : StResponse;
        StData: if (wr_ready_i && wr_o.last) state_q <= StPick;
        default: ;
      endcase
    end
  end
  always_ff @(posedge clk_i) begin
    if (state_q == StPick) say_q <= next;
    if (state_q == StResponse) begin
      fits_q <= wlen_i >= len;
      left_q <= 6'(len);
      text_q <= sized ? MsgW'({rows_i, cols_i, say_q}) : MsgW'({8'h30 + 8'(say_q.id), ".", "t", "c", "u", "d", "a", "i", "v", say_q});
    end else if (wr_valid_o && wr_ready_i) begin
      left_q <= left_q - 6'(StrbW);
      text_q <= MsgW'({DataW'(0), text_q} >> DataW);
    end
  end

  assign short_o  = state_q == StResponse && !avail_i;
  assign moving_o = msg_valid_i || heard_q || resize_i || state_q == StPick && some || state_q == StResponse && avail_i;
  assign idle_o   = state_q == StPick && !some && !heard_q;

endmodule
