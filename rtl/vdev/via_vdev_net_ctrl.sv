// SPDX-License-Identifier: Apache-2.0
//
// Control queue of the net device, and the state it sets: receive filter, MAC address, queue pairs in use.
// A command is parsed byte by byte (slow path: a byte is accepted in one cycle and evaluated in the next, and the first byte of a beat
// takes one cycle more) and takes effect at its end only if it was right in all parts: known, negotiated, of exactly the length that it
// states.
// Misuse: everything else completes with VIRTIO_NET_ERR and changes nothing. A command longer than `Longest` is an error; the rest of it is
// dropped beat by beat. A chain without room for the status byte raises fail_o. Order: one command at a time.
// The filter holds `Entries` addresses; when a table has more, all frames of that kind (unicast, multicast) pass, as the specification
// allows.
// Source: VIRTIO 1.3, 5.1.6.5.

module via_vdev_net_ctrl
  import via_pkg::*;
  import via_virtio_pkg::*;
  import via_vdev_pkg::*;
#(
  parameter int unsigned Entries = 16,   // addresses in the filter
  parameter int unsigned Longest = 4096  // bytes of the longest command
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,
  input  logic     [      63:0] features_i,    // features accepted
  input  logic     [      47:0] mac_i,         // MAC address until the driver sets another
  input  vq_req_t               req_i,         // command; accepted with its last byte
  input  logic                  none_i,        // with req_i: it has no readable bytes
  input  logic                  req_valid_i,
  output logic                  req_ready_o,
  input  vq_beat_t              rd_i,          // bytes of the command
  input  logic                  rd_valid_i,
  output logic                  rd_ready_o,
  output vq_rsp_t               rsp_o,         // response
  output logic                  rsp_valid_o,
  input  logic                  rsp_ready_i,
  output vq_beat_t              wr_o,          // its status byte
  output logic                  wr_valid_o,
  input  logic                  wr_ready_i,
  output logic                  fail_o,        // pulse: no room for the status byte
  output logic     [QueueW-1:0] fail_queue_o,  // with fail_o: the queue to stop
  output logic     [      47:0] mac_o,         // MAC address in use
  output logic     [       2:0] pairs_o,       // queue pairs in use, 1 to NetPairs
  input  logic     [      47:0] dst_i,         // destination address of a frame
  output logic                  accept_o,      // a cycle later: it passes the filter
  output logic                  moving_o,      // level: something moves
  output logic                  idle_o         // level: no command is in progress
);

  localparam bit EntriesOk = param_pow2("via_vdev_net_ctrl Entries", Entries, 2, 1024);
  localparam bit LongestOk = param_in("via_vdev_net_ctrl Longest", Longest, 1, 65536);

  localparam logic [7:0] ClassRx = 8'd0;
  localparam logic [7:0] ClassMac = 8'd1;
  localparam logic [7:0] ClassMq = 8'd4;
  localparam int unsigned EntryW = $clog2(Entries + 1);
  localparam int unsigned CountW = $clog2(Longest + 1);

  // ---------------------------------------------------------------- device state
  typedef enum logic [2:0] {
    RxPromisc  = 3'd0,
    RxAllMulti = 3'd1,
    RxAllUni   = 3'd2,
    RxNoMulti  = 3'd3,
    RxNoUni    = 3'd4,
    RxNoBcast  = 3'd5
  } rx_mode_e;
  logic [5:0] mode_q;  // indexed by rx_mode_e
  logic mac_set_q;
  logic [47:0] mac_q;
  logic [2:0] pairs_q;
  // The table in use, and the one being filled, which replaces it two cycles after the end of its command.
  typedef struct packed {
    logic [Entries-1:0][47:0] addr;
    logic [Entries-1:0]       used;
    logic                     uni_over;    // there were more addresses than entries
    logic                     multi_over;
  } table_t;
  table_t table_q, fill_table_q;
  logic table_new_q, table_copy_q;

  assign pairs_o = pairs_q;

  // Three registered results: the address passes whatever the table holds; it passes if it is found; it was found.
  localparam int unsigned Halves = 2;  // one register for the even and one for the odd entries, as the logic after them takes time, too
  logic [Halves-1:0] hits, hits_q;
  logic passes_q, may_q, own_q;
  logic [47:0] now_q;  // the device's address
  assign mac_o = now_q;
  always_comb begin
    hits = '0;
    for (int unsigned i = 0; i < Entries; i++) if (table_q.used[i] && table_q.addr[i] == dst_i) hits[i%Halves] = 1'b1;
  end
  always_ff @(posedge clk_i) begin
    now_q <= mac_set_q ? mac_q : mac_i;
    hits_q <= hits;
    own_q    <= dst_i == now_q && !dst_i[0];
    passes_q <= mode_q[RxPromisc];
    may_q    <= 1'b0;
    if (&dst_i) begin
      if (!mode_q[RxNoBcast]) passes_q <= 1'b1;
    end else if (dst_i[0]) begin
      if (!mode_q[RxNoMulti] && (mode_q[RxAllMulti] || table_q.multi_over)) passes_q <= 1'b1;
      may_q <= !mode_q[RxNoMulti];
    end else begin
      if (!mode_q[RxNoUni] && (mode_q[RxAllUni] || table_q.uni_over)) passes_q <= 1'b1;
      may_q <= !mode_q[RxNoUni];
    end
  end
  assign accept_o = passes_q || may_q && (own_q || |hits_q);

  // ---------------------------------------------------------------- bytes
  typedef enum logic [1:0] {
    StBytes,
    StResponse,
    StStatus
  } state_e;
  state_e state_q;
  logic [BeatLog2-1:0] lane_q;
  logic [CountW-1:0] taken_q;  // bytes of the command accepted
  logic look, look_q;  // a beat, or a command without bytes, is offered; was offered in the previous cycle
  logic byte_now, beat_end, cmd_last;
  logic [BeatLog2-1:0] next_q;  // the next lane
  // Computed in the cycle before the byte is used: the eight bytes that include it, and whether the beat has another byte after it.
  logic [63:0] near_q;
  logic more_q;
  logic [BeatLog2-1:0] more_at;
  logic cmd_end_q;  // the current byte is the command's last

  assign look = state_q == StBytes && req_valid_i && (rd_valid_i || none_i);
  assign byte_now = look_q;  // offered a cycle ago and not accepted, so still offered
  assign more_at = byte_now ? next_q + 1'b1 : next_q;
  assign beat_end = !more_q || taken_q == CountW'(Longest);
  assign cmd_last = byte_now && (none_i || beat_end && rd_i.last);
  assign rd_ready_o = byte_now && !none_i && beat_end;
  assign req_ready_o = cmd_last;

  // The byte, and what is known of its command at its end.
  logic [CountW-1:0] count_q;  // bytes of the command evaluated
  logic step_q, long, args_q, no_room_q;  // args_q: class and command are known, and it is not too long
  logic [QueueW-1:0] queue_q;
  logic [7:0] byte_q;
  assign long = count_q == CountW'(Longest);
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      lane_q    <= '0;
      next_q    <= BeatLog2'(1);
      taken_q   <= '0;
      look_q    <= 1'b0;
      step_q    <= 1'b0;
      cmd_end_q <= 1'b0;
    end else begin
      look_q    <= look && !cmd_end_q && !(byte_now && (none_i || beat_end));
      step_q    <= byte_now;
      cmd_end_q <= cmd_last;
      if (byte_now) begin
        lane_q <= beat_end ? '0 : next_q;
        next_q <= beat_end ? BeatLog2'(1) : next_q + 1'b1;
        if (cmd_last) taken_q <= '0;
        else if (taken_q != CountW'(Longest)) taken_q <= taken_q + 1'b1;
      end
    end
  end
  always_ff @(posedge clk_i) begin
    byte_q <= near_q[8*lane_q[2:0]+:8];
    near_q <= rd_i.data[64*((byte_now?32'(next_q) : 32'(lane_q))/8)+:64];
    more_q <= more_at != '0 && rd_i.keep[more_at];
    if (cmd_last) begin
      queue_q   <= req_i.queue;
      no_room_q <= req_i.wlen == '0;
    end
  end

  // ---------------------------------------------------------------- commands
  logic [7:0] class_q;
  logic [2:0] cmd_q;
  logic ok_q;
  logic [47:0] word_q, word;  // the last six bytes, the newest at the top
  logic [ 2:0] place_q;  // byte within the entry, or within the count of entries
  logic [31:0] left_q;  // entries of the list still to come
  logic left_some_q, left_one_q;  // ... at least one, exactly one
  logic in_list_q, second_q, entry_end;
  logic [EntryW-1:0] fill_q;  // next free entry
  logic args, put_q, put_second_q;  // put_q: word_q is an entry
  logic is_rx_q, is_table_q, is_mac_q, is_mq_q;  // the command, if it is known and negotiated

  assign word = {byte_q, word_q[47:8]};
  assign args = step_q && args_q;
  // Two lists, each with four bytes of count, then six for each entry.
  assign entry_end = place_q == (in_list_q ? 3'd5 : 3'd3);

  // The command ends where it must, with a valid value.
  logic rx_ok, table_ok, mac_ok, mq_ok, ends, accepted;
  assign ends = cmd_end_q && args_q;
  assign rx_ok = is_rx_q && count_q == CountW'(2) && byte_q <= 8'd1;
  // The last byte is that of the last entry of the second list, or of its count if the list is empty.
  assign table_ok = is_table_q && second_q && entry_end && (in_list_q ? left_one_q : word[47:16] == '0);
  assign mac_ok = is_mac_q && count_q == CountW'(7) && !word[0];
  assign mq_ok = is_mq_q && count_q == CountW'(3) && word[47:32] != '0 && word[47:32] <= 16'(NetPairs);
  assign accepted = args_q && (rx_ok || table_ok || mac_ok || mq_ok);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      mode_q                  <= 6'b1 << RxPromisc;
      mac_set_q               <= 1'b0;
      pairs_q                 <= 3'd1;
      table_new_q             <= 1'b0;
      table_copy_q            <= 1'b0;
      put_q                   <= 1'b0;
      table_q.used            <= '0;
      table_q.uni_over        <= 1'b0;
      table_q.multi_over      <= 1'b0;
      fill_table_q.used       <= '0;
      fill_table_q.uni_over   <= 1'b0;
      fill_table_q.multi_over <= 1'b0;
    end else begin
      put_q        <= args && is_table_q && in_list_q && entry_end && left_some_q;
      table_new_q  <= ends && table_ok;
      table_copy_q <= table_new_q;  // its last entry is written meanwhile
      if (table_copy_q) table_q <= fill_table_q;
      if (ends) begin
        if (rx_ok) mode_q[cmd_q] <= byte_q[0];
        if (mac_ok) mac_set_q <= 1'b1;
        if (mq_ok) pairs_q <= word[34:32];
      end
      // What a rejected command left in the other table is dropped at the start of the next command.
      if (step_q && !args_q) begin
        fill_table_q.used       <= '0;
        fill_table_q.uni_over   <= 1'b0;
        fill_table_q.multi_over <= 1'b0;
      end else if (put_q) begin
        if (fill_q == EntryW'(Entries)) begin
          if (put_second_q) fill_table_q.multi_over <= 1'b1;
          else fill_table_q.uni_over <= 1'b1;
        end else begin
          fill_table_q.used[fill_q[EntryW-2:0]] <= 1'b1;
          fill_table_q.addr[fill_q[EntryW-2:0]] <= word_q;
        end
      end
    end
  end
  always_ff @(posedge clk_i) begin
    if (ends && mac_ok) mac_q <= word;
    if (step_q) begin
      if (count_q == '0) class_q <= byte_q;
      if (count_q == CountW'(1)) begin
        cmd_q <= byte_q[2:0];
        is_rx_q    <= class_q == ClassRx && (byte_q <= 8'd1 && features_i[NetFCtrlRx] || byte_q >= 8'd2 && byte_q <= 8'd5 && features_i[NetFCtrlRxExtra]);
        is_table_q <= class_q == ClassMac && byte_q == 8'd0 && features_i[NetFCtrlRx];
        is_mac_q <= class_q == ClassMac && byte_q == 8'd1 && features_i[NetFCtrlMacAddr];
        is_mq_q <= class_q == ClassMq && byte_q == 8'd0 && features_i[NetFMq];
      end
      word_q <= word;
    end
    put_second_q <= second_q;
    if (step_q && !args_q) fill_q <= '0;
    else if (put_q && fill_q != EntryW'(Entries)) fill_q <= fill_q + 1'b1;
    if (step_q && !args_q) begin
      place_q   <= '0;
      in_list_q <= 1'b0;
      second_q  <= 1'b0;
    end else if (args) begin
      place_q <= entry_end ? '0 : place_q + 1'b1;
      if (entry_end && !in_list_q) begin
        left_q      <= word[47:16];
        left_some_q <= word[47:16] != '0;
        left_one_q  <= word[47:16] == 32'd1;
        // An empty list ends at once; bytes after the second list are an error.
        if (word[47:16] != '0 || second_q) in_list_q <= 1'b1;
        else second_q <= 1'b1;
      end else if (entry_end && left_some_q) begin
        left_q      <= left_q - 1'b1;
        left_some_q <= !left_one_q;
        left_one_q  <= left_q == 32'd2;
        if (left_one_q && !second_q) begin
          in_list_q <= 1'b0;
          second_q  <= 1'b1;
        end
      end
    end
  end

  // ---------------------------------------------------------------- response
  assign fail_o = cmd_end_q && no_room_q;
  assign fail_queue_o = queue_q;
  assign rsp_valid_o = state_q == StResponse;
  assign wr_valid_o = state_q == StStatus;
  assign wr_o = '{last: 1'b1, keep: StrbW'(1), data: DataW'(!ok_q)};
  assign rsp_o = '{queue: queue_q, merge: 1'b0, len: 32'd1};

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= StBytes;
      count_q <= '0;
      args_q  <= 1'b0;
    end else begin
      if (step_q && cmd_end_q) begin
        count_q <= '0;
        args_q  <= 1'b0;
      end else if (step_q && !long) begin
        count_q <= count_q + 1'b1;
        args_q  <= count_q != '0 && count_q != CountW'(Longest - 1);
      end
      unique case (state_q)
        StBytes: if (cmd_end_q && !fail_o) state_q <= StResponse;
        StResponse: if (rsp_ready_i) state_q <= StStatus;
        StStatus: if (wr_ready_i) state_q <= StBytes;
        default: ;
      endcase
    end
  end
  always_ff @(posedge clk_i) begin
    if (cmd_end_q) ok_q <= accepted;
  end

  assign moving_o = look || step_q || table_new_q || table_copy_q;
  assign idle_o   = state_q == StBytes && taken_q == '0 && !step_q;

endmodule
