// SPDX-License-Identifier: Apache-2.0
//
// Routes BAR accesses to registers, doorbells, app registers and the configuration port. AXI4-Lite, 32 bits; map in rtl/regs/viaduct.rdl.
//
// Throughput: one access at a time, reads and writes alternate. Latency: a write four cycles, a read five; an app register two more than
// via_app_regs needs. Order: reads in order, writes in order.
// An address without a register reads 0xffffffff and ignores writes; the response is OKAY in both cases, as an absent register looks on
// PCIe.
// Misuse: a write to ICAP_DATA that finds no room for IcapTimeout cycles is lost, which ICAP_STATUS reports.

module via_csr
  import via_pkg::*;
  import via_virtio_pkg::NumFn, via_virtio_pkg::FnW, via_virtio_pkg::fn_ctrl_t, via_virtio_pkg::fn_features_t, via_virtio_pkg::attach_e;
#(
  parameter int unsigned PageWays = MmuPageWays,  // geometry of the TLBs, as read back
  parameter int unsigned PageSets = MmuPageSets,
  parameter int unsigned HugeWays = MmuHugeWays,
  parameter int unsigned HugeSets = MmuHugeSets,
  parameter int unsigned IcapTimeout = 65536  // cycles
) (
  input  logic                      clk_i,
  input  logic                      rst_ni,
  input  logic        [       63:0] time_i,                      // card time
  input  logic        [       31:0] chan_mib_i,                  // size of each DRAM channel in MiB, constant
  input  logic        [       31:0] clk_khz_i,                   // frequency of clk_i, constant
  input  logic                      quiet_i,                     // level: nothing moves in the shell
  // AXI4-Lite
  input  logic        [       19:0] axil_awaddr_i,
  input  logic                      axil_awvalid_i,
  output logic                      axil_awready_o,
  input  logic        [       31:0] axil_wdata_i,
  input  logic        [        3:0] axil_wstrb_i,
  input  logic                      axil_wvalid_i,
  output logic                      axil_wready_o,
  output logic        [        1:0] axil_bresp_o,
  output logic                      axil_bvalid_o,
  input  logic                      axil_bready_i,
  input  logic        [       19:0] axil_araddr_i,
  input  logic                      axil_arvalid_i,
  output logic                      axil_arready_o,
  output logic        [       31:0] axil_rdata_o,
  output logic        [        1:0] axil_rresp_o,
  output logic                      axil_rvalid_o,
  input  logic                      axil_rready_i,
  // slots
  output slot_ctrl_t                ctrl_o        [  NumSlots],  // control of each slot
  output table_cfg_t                table_o       [  NumSlots],  // page table of each slot
  output logic        [WeightW-1:0] weight_o      [NumSlots+3],  // share of card memory, from 1: slots, XDMA, DMA, page tables
  output logic        [        7:0] window_o,                    // of host memory: beats under way each way, in 16
  output share_cfg_t                share_o,                     // policy and quanta of all that is shared
  output host_share_t               host_share_o,                // weights and classes at the host port
  output sched_cfg_t                sched_o       [  NumSlots],  // what else a slot's share of memory depends on

  input slot_stat_t stat_i[NumSlots],  // state of each slot
  input logic [31:0] count_i[NumSlots][8],  // counters, in the order of their registers
  input meter_count_t meter_i[NumSlots],  // what slots have requested of memory
  // a register of the app in a slot, through via_app_regs
  output reg_req_t app_req_o,  // register access
  output logic [3:0] app_slot_o,  // slot it is for
  output logic app_valid_o,  // held until the response
  input logic app_rvalid_i,  // one-cycle pulse, in time whatever the app does
  input logic [31:0] app_rdata_i,  // read data; all ones if not served
  // rings: commands of slot s; ring 2s = its completions, 2s + 1 = its events
  output ring_cfg_t cmd_cfg_o[NumSlots],  // command rings
  output ring_idx_t cmd_tail_o[NumSlots],  // doorbell: written by the host up to here
  input ring_idx_t cmd_head_i[NumSlots],  // fetched up to here
  input logic [NumSlots-1:0] cmd_on_i,  // level: may still be read
  input logic [NumSlots-1:0] cmd_tail_err_i,  // level: stopped, the tail jumped
  input logic [NumSlots-1:0] cmd_bus_err_i,  // level: stopped, a read failed
  output ring_cfg_t ring_cfg_o[2*NumSlots],  // completion and event rings
  output ring_idx_t ring_head_o[2*NumSlots],  // doorbell: read by the host up to here
  output logic [2*NumSlots-1:0] ring_arm_o,  // pulse with the write of the doorbell
  input ring_idx_t ring_tail_i[2*NumSlots],  // written up to here
  input logic [2*NumSlots-1:0] ring_on_i,  // level: may still be written
  input logic [2*NumSlots-1:0] ring_err_i,  // level: stopped
  // routes of the switch
  output vio_route_t route_o,  // as written last; its sink is the one that route_state_i is about
  output logic route_set_o,  // pulse: set it
  input vio_state_t route_state_i,  // what the sink takes now
  // functions
  output fn_ctrl_t fn_ctrl_o[NumFn:1],  // settings of each function
  input logic [NumFn:1] fn_present_i,  // constant: in this build
  input logic [NumFn:1] fn_attached_i,  // level: user side is connected
  input logic [7:0] fn_status_i[NumFn:1],  // virtio device status
  input fn_features_t fn_features_i[NumFn:1],  // virtio features offered and accepted
  input logic [31:0] fn_count_i[NumFn:1][3],  // message counters
  input logic [15:0] fn_flushes_i[NumFn:1],  // number of the latest flush
  // configuration port
  input logic [NumSlots-1:0] loaded_i,  // level: an app is in the slot
  output logic [NumSlots-1:0] load_o,  // level: the slot is being loaded
  output logic icap_valid_o,
  output logic [31:0] icap_data_o,  // word of the image
  output logic [3:0] icap_slot_o,  // slot being loaded
  output logic icap_start_o,  // one-cycle pulse: an image begins
  output logic icap_end_o,  // one-cycle pulse: the image is complete
  input logic icap_ready_i,
  input logic icap_done_i,  // one-cycle pulse: the image is loaded, or failed
  input logic [7:0] icap_status_i,  // result, with icap_done_i
  // system monitor
  input logic [3:0] sysmon_kind_i,  // how codes are converted, bit 3: a model; constant
  input logic [31:0] sysmon_full_i,  // current at full scale in mA, constant
  output logic sysmon_start_o,  // one-cycle pulse: read all values
  input sysmon_state_t sysmon_i,
  input logic [15:0] sysmon_value_i[SysmonValues],  // in the order of the registers
  output logic idle_o  // level: no access is in progress
);

  localparam bit PageWaysOk = param_in("via_csr PageWays", PageWays, 1, 64);
  localparam bit PageSetsOk = param_pow2("via_csr PageSets", PageSets, 2, 65536);
  localparam bit HugeWaysOk = param_in("via_csr HugeWays", HugeWays, 1, 64);
  localparam bit HugeSetsOk = param_pow2("via_csr HugeSets", HugeSets, 2, 65536);
  localparam bit IcapTimeoutOk = param_in("via_csr IcapTimeout", IcapTimeout, 1, 131071);

  localparam logic [11:0] IcapData = 12'h044;  // ICAP_DATA in rtl/regs/viaduct.rdl

  // ---------------------------------------------------------------- address decoding, in front of the slices
  // Blocks of the map, by their first address.
  typedef enum logic [2:0] {
    ToNone,
    ToCard,
    ToSlot,
    ToApp,
    ToFn,
    ToBell
  } dest_e;
  typedef struct packed {
    logic        icap;  // ICAP_DATA
    dest_e       dest;
    logic [19:0] addr;
  } place_t;

  function automatic place_t place(input logic [19:0] addr);
    logic [FnW-1:0] fn;
    fn    = addr[8+:FnW];
    // The low address bits are ignored: the strobes select the bytes.
    place = '{icap: 1'b0, dest: ToNone, addr: addr & ~20'h3};
    if (addr[19:12] == 8'h00) begin
      place.dest = ToCard;
      place.icap = place.addr[11:0] == IcapData;
    end else if (addr[19:12] == 8'h30 && fn != '0 && 32'(fn) <= NumFn) begin
      place.dest = ToFn;
    end else if (32'(addr[15:12]) < NumSlots) begin
      unique case (addr[19:16])
        4'h1: place.dest = ToSlot;
        4'h2: place.dest = ToApp;
        4'h4: place.dest = ToBell;
        default: ;
      endcase
    end
  endfunction

  // ---------------------------------------------------------------- the bus
  typedef struct packed {
    logic [3:0]  strb;
    logic [31:0] data;
  } wdata_t;
  place_t aw, ar;
  wdata_t w;
  logic [31:0] rdata_q;
  logic aw_valid, w_valid, ar_valid, aw_pop, ar_pop, b_push, r_push, b_room, r_room;

  via_slice #(
    .T(place_t)
  ) u_aw (
    .clk_i,
    .rst_ni,
    .s_i(place(axil_awaddr_i)),
    .s_valid_i(axil_awvalid_i),
    .s_ready_o(axil_awready_o),
    .m_o(aw),
    .m_valid_o(aw_valid),
    .m_ready_i(aw_pop)
  );
  via_slice #(
    .T(wdata_t)
  ) u_w (
    .clk_i,
    .rst_ni,
    .s_i('{strb: axil_wstrb_i, data: axil_wdata_i}),
    .s_valid_i(axil_wvalid_i),
    .s_ready_o(axil_wready_o),
    .m_o(w),
    .m_valid_o(w_valid),
    .m_ready_i(aw_pop)
  );
  via_slice #(
    .T(place_t)
  ) u_ar (
    .clk_i,
    .rst_ni,
    .s_i(place(axil_araddr_i)),
    .s_valid_i(axil_arvalid_i),
    .s_ready_o(axil_arready_o),
    .m_o(ar),
    .m_valid_o(ar_valid),
    .m_ready_i(ar_pop)
  );
  // B carries no payload: every response is OKAY.
  via_slice #(
    .T(logic)
  ) u_b (
    .clk_i,
    .rst_ni,
    .s_i(1'b0),
    .s_valid_i(b_push),
    .s_ready_o(b_room),
    .m_o(),
    .m_valid_o(axil_bvalid_o),
    .m_ready_i(axil_bready_i)
  );
  via_slice #(
    .T(logic [31:0])
  ) u_r (
    .clk_i,
    .rst_ni,
    .s_i(rdata_q),
    .s_valid_i(r_push),
    .s_ready_o(r_room),
    .m_o(axil_rdata_o),
    .m_valid_o(axil_rvalid_o),
    .m_ready_i(axil_rready_i)
  );
  assign axil_bresp_o = RespOkay;
  assign axil_rresp_o = RespOkay;

  // ---------------------------------------------------------------- one access at a time
  typedef enum logic [2:0] {
    Idle,
    Access,
    Read,
    App,
    Response
  } state_e;
  state_e state_q;
  logic write_q, last_write_q, start, start_write, icap_wait, icap_late;
  place_t next, at_q;
  wdata_t wdata_q;
  logic [31:0] rdata;
  logic icap_room;
  logic [16:0] wait_q;
  // One request bit for each block of registers, so that nothing is decoded on the way to a block. Each has its own address registers,
  // which need not fan out to the others.
  logic card_go, card_req_q;
  logic [NumSlots-1:0] slot_go, bell_go;
  logic [NumFn:1] fn_go;
  logic [11:0] card_addr_q, slot_addr_q[NumSlots], bell_addr_q[NumSlots];
  logic [7:0] fn_addr_q[NumFn:1];
  logic [NumSlots-1:0] slot_req_q, bell_req_q;
  logic [  NumFn:1] fn_req_q;
  logic [SlotW-1:0] slot;
  logic [  FnW-1:0] fn;

  // Reads and writes alternate when both wait, so neither starves.
  assign start_write = aw_valid && w_valid && !(ar_valid && last_write_q);
  assign start = state_q == Idle && (start_write || ar_valid);
  assign aw_pop = start && start_write;
  assign ar_pop = start && !start_write;
  assign next = start_write ? aw : ar;
  assign slot = at_q.addr[12+:SlotW];
  assign fn = at_q.addr[8+:FnW];

  assign icap_wait = at_q.icap && write_q && !icap_room;
  assign icap_late = wait_q == 17'(IcapTimeout);
  assign b_push = state_q == Response && write_q;
  assign r_push = state_q == Response && !write_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q      <= Idle;
      last_write_q <= 1'b0;
      wait_q       <= '0;
    end else begin
      unique case (state_q)
        Idle: begin
          if (start) begin
            state_q <= Access;
            last_write_q <= start_write;
            wait_q <= '0;
          end
        end
        Access: begin
          if (icap_wait && !icap_late) wait_q <= wait_q + 1'b1;
          else if (at_q.dest == ToApp && (!write_q || wdata_q.strb == '1)) state_q <= App;
          else state_q <= write_q ? Response : Read;
        end
        Read: state_q <= Response;
        App: if (app_rvalid_i) state_q <= Response;
        default: if (write_q ? b_room : r_room) state_q <= Idle;
      endcase
    end
  end
  always_ff @(posedge clk_i) begin
    if (start) begin
      write_q <= start_write;
      at_q    <= next;
      wdata_q <= w;
    end
    if (state_q == Read) rdata_q <= rdata;
    if (state_q == App) rdata_q <= app_rdata_i;
  end

  always_comb begin
    card_go = start && next.dest == ToCard;
    for (int unsigned s = 0; s < NumSlots; s++) begin
      slot_go[s] = start && next.dest == ToSlot && next.addr[12+:SlotW] == SlotW'(s);
      bell_go[s] = start && next.dest == ToBell && next.addr[12+:SlotW] == SlotW'(s);
    end
    for (int unsigned f = 1; f <= NumFn; f++) fn_go[f] = start && next.dest == ToFn && next.addr[8+:FnW] == FnW'(f);
  end

  // A request is held for the cycle of the access; a word for the configuration port may have to wait for room.
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      card_req_q <= 1'b0;
      slot_req_q <= '0;
      bell_req_q <= '0;
      fn_req_q   <= '0;
    end else begin
      if (start || !icap_wait || icap_late) card_req_q <= card_go;
      slot_req_q <= slot_go;
      bell_req_q <= bell_go;
      fn_req_q   <= fn_go;
    end
  end
  always_ff @(posedge clk_i) begin
    if (card_go) card_addr_q <= next.addr[11:0];
    for (int unsigned s = 0; s < NumSlots; s++) begin
      if (slot_go[s]) slot_addr_q[s] <= next.addr[11:0];
      if (bell_go[s]) bell_addr_q[s] <= next.addr[11:0];
    end
    for (int unsigned f = 1; f <= NumFn; f++) if (fn_go[f]) fn_addr_q[f] <= next.addr[7:0];
  end

  // ---------------------------------------------------------------- app registers
  assign app_req_o   = '{addr: at_q.addr[11:0], write: write_q, wdata: wdata_q.data};
  assign app_slot_o  = at_q.addr[15:12];
  assign app_valid_o = state_q == App;

  // ---------------------------------------------------------------- generated registers
  // Response of a block of registers; the block that was addressed is selected a cycle later.
  typedef struct packed {
    logic        err;
    logic [31:0] data;
  } read_t;
  logic [31:0] biten;
  read_t card_read, card_read_q, slot_read[NumSlots], slot_read_q[NumSlots], bell_read[NumSlots], bell_read_q[NumSlots];
  read_t fn_read[NumFn:1], fn_read_q[NumFn:1];
  assign biten = {{8{wdata_q.strb[3]}}, {8{wdata_q.strb[2]}}, {8{wdata_q.strb[1]}}, {8{wdata_q.strb[0]}}};

  always_ff @(posedge clk_i) begin
    card_read_q <= card_read;
    slot_read_q <= slot_read;
    bell_read_q <= bell_read;
    fn_read_q   <= fn_read;
  end
  always_comb begin
    rdata = '1;
    unique case (at_q.dest)
      ToCard:  if (!card_read_q.err) rdata = card_read_q.data;
      ToSlot:  if (!slot_read_q[slot].err) rdata = slot_read_q[slot].data;
      ToFn:    if (!fn_read_q[fn].err) rdata = fn_read_q[fn].data;
      ToBell:  if (!bell_read_q[slot].err) rdata = bell_read_q[slot].data;
      default: ;
    endcase
  end

  via_card_regs_pkg::via_card_regs__in_t card_in;
  via_card_regs_pkg::via_card_regs__out_t card_out;
  logic [31:0] time_hi_q;
  logic icap_busy, icap_done, icap_idle, word_q, lost_q;
  logic [7:0] icap_code;

  via_card_regs u_card (
    .clk                 (clk_i),
    .rst_n               (rst_ni),
    .s_cpuif_req         (card_req_q && !icap_wait),
    .s_cpuif_req_is_wr   (write_q),
    .s_cpuif_addr        (card_addr_q),
    .s_cpuif_wr_data     (wdata_q.data),
    .s_cpuif_wr_biten    (biten),
    .s_cpuif_req_stall_wr(),
    .s_cpuif_req_stall_rd(),
    .s_cpuif_rd_ack      (),
    .s_cpuif_rd_err      (card_read.err),
    .s_cpuif_rd_data     (card_read.data),
    .s_cpuif_wr_ack      (),
    .s_cpuif_wr_err      (),
    .hwif_in             (card_in),
    .hwif_out            (card_out)
  );

  assign card_in.GEOMETRY.SLOTS.next = 8'(NumSlots);
  assign card_in.GEOMETRY.CHANNELS.next = 8'(NumChan);
  assign card_in.GEOMETRY.STREAMS.next = 8'(NumStreams);
  assign card_in.GEOMETRY.DATA_LOG2.next = 8'(BeatLog2);
  assign card_in.CLOCK_KHZ.KHZ.next = clk_khz_i;
  assign card_in.TIME_LO.VALUE.next = time_i[31:0];
  assign card_in.TIME_HI.VALUE.next = time_hi_q;
  assign card_in.CHAN_MIB.MIB.next = chan_mib_i;
  assign card_in.TLB_PAGE.WAYS.next = 16'(PageWays);
  assign card_in.TLB_PAGE.SETS_LOG2.next = 16'($clog2(PageSets));
  assign card_in.TLB_HUGE.WAYS.next = 16'(HugeWays);
  assign card_in.TLB_HUGE.SETS_LOG2.next = 16'($clog2(HugeSets));
  assign card_in.STATUS.QUIET.next = quiet_i;
  assign card_in.STATUS.LOADED.next = 16'(loaded_i);
  assign card_in.ICAP_STATUS.BUSY.next = icap_busy;
  assign card_in.ICAP_STATUS.DONE.next = icap_done;
  assign card_in.ICAP_STATUS.LOST.next = lost_q;
  assign card_in.ICAP_STATUS.CODE.next = icap_code;

  assign sysmon_start_o = card_out.SYSMON_CTRL.START.value;
  assign {card_in.SYSMON_STATUS.MODEL.next, card_in.SYSMON_STATUS.KIND.next} = sysmon_kind_i;
  assign card_in.SYSMON_STATUS.FAILED.next = sysmon_i.failed;
  assign card_in.SYSMON_STATUS.VALID.next = sysmon_i.valid;
  assign card_in.SYSMON_STATUS.BUSY.next = sysmon_i.busy;
  assign card_in.SYSMON_FULL.MILLIAMPERES.next = sysmon_full_i;
  assign card_in.SYSMON_TEMP.LAST.next = sysmon_value_i[0];
  assign card_in.SYSMON_TEMP_RANGE.MAX.next = sysmon_value_i[1];
  assign card_in.SYSMON_TEMP_RANGE.MIN.next = sysmon_value_i[2];
  assign card_in.SYSMON_VCCINT.LAST.next = sysmon_value_i[3];
  assign card_in.SYSMON_VCCINT_RANGE.MAX.next = sysmon_value_i[4];
  assign card_in.SYSMON_VCCINT_RANGE.MIN.next = sysmon_value_i[5];
  assign card_in.SYSMON_VCCAUX.LAST.next = sysmon_value_i[6];
  assign card_in.SYSMON_VCCAUX_RANGE.MAX.next = sysmon_value_i[7];
  assign card_in.SYSMON_VCCAUX_RANGE.MIN.next = sysmon_value_i[8];
  assign card_in.SYSMON_VCCBRAM.LAST.next = sysmon_value_i[9];
  assign card_in.SYSMON_VCCBRAM_RANGE.MAX.next = sysmon_value_i[10];
  assign card_in.SYSMON_VCCBRAM_RANGE.MIN.next = sysmon_value_i[11];
  assign card_in.SYSMON_CURRENT.LAST.next = sysmon_value_i[12];

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      word_q <= 1'b0;
      lost_q <= 1'b0;
    end else begin
      word_q <= card_out.ICAP_DATA.WORD.swmod;
      if (card_out.ICAP_CTRL.START.value) lost_q <= 1'b0;
      else if (state_q == Access && icap_wait && icap_late) lost_q <= 1'b1;
    end
  end
  always_ff @(posedge clk_i) if (card_out.TIME_LO.VALUE.swacc) time_hi_q <= time_i[63:32];

  via_icap u_icap (
    .clk_i,
    .rst_ni,
    .slot_i      (card_out.ICAP_CTRL.SLOT.value),
    .start_i     (card_out.ICAP_CTRL.START.value),
    .end_i       (card_out.ICAP_CTRL.END.value),
    .word_i      (card_out.ICAP_DATA.WORD.value),
    .word_valid_i(word_q),
    .room_o      (icap_room),
    .busy_o      (icap_busy),
    .done_o      (icap_done),
    .code_o      (icap_code),
    .load_o,
    .icap_valid_o,
    .icap_data_o,
    .icap_slot_o,
    .icap_start_o,
    .icap_end_o,
    .icap_ready_i,
    .icap_done_i,
    .icap_status_i,
    .idle_o      (icap_idle)
  );

  // Routes. The pulse is a cycle behind the write, with its value.
  function automatic vio_end_t end_of(input logic [1:0] kind, input logic [3:0] of_slot, input logic [3:0] index);
    return '{kind: vio_kind_e'(kind), slot: of_slot, index: index};
  endfunction
  assign route_o = '{
          now: card_out.ROUTE_SOURCE.NOW.value,
          source: end_of(card_out.ROUTE_SOURCE.KIND.value, card_out.ROUTE_SOURCE.SLOT.value, card_out.ROUTE_SOURCE.INDEX.value),
          sink: end_of(card_out.ROUTE_SINK.KIND.value, card_out.ROUTE_SINK.SLOT.value, card_out.ROUTE_SINK.INDEX.value)
      };
  always_ff @(posedge clk_i) route_set_o <= rst_ni && card_out.ROUTE_SOURCE.KIND.swmod;
  assign card_in.ROUTE_STATE.PENDING.next = route_state_i.pending;
  assign card_in.ROUTE_STATE.STREAMS.next = 4'(VioStreams);
  assign card_in.ROUTE_STATE.KIND.next = route_state_i.source.kind;
  assign card_in.ROUTE_STATE.SLOT.next = route_state_i.source.slot;
  assign card_in.ROUTE_STATE.INDEX.next = route_state_i.source.index;

  // Counters are read from copies, which all stand still while they are held.
  logic held;
  logic [63:0] held_time_q;
  assign held = card_out.COUNTERS.HOLD.value;
  assign card_in.COUNT_TIME_LO.VALUE.next = held_time_q[31:0];
  assign card_in.COUNT_TIME_HI.VALUE.next = held_time_q[63:32];
  always_ff @(posedge clk_i) if (!held) held_time_q <= time_i;

  assign window_o = card_out.HOST_WINDOW.BEATS.value;

  // Weights of card memory. Walks are for accesses of slots, which may not wait for them longer than their own weight says: so they have that of
  // the slot with the largest one, or more.
  function automatic logic [WeightW-1:0] weight_of(input logic [WeightW-1:0] value);
    return (value == '0) ? WeightW'(1) : value;
  endfunction
  function automatic logic [3:0] quantum_of(input logic [3:0] log2, input int unsigned most);
    return (32'(log2) > most) ? 4'(most) : log2;
  endfunction
  always_ff @(posedge clk_i) begin
    share_o <= '{
        plain: card_out.SHARING.PLAIN.value,
        chan_log2: quantum_of(card_out.SHARING.CHAN_QUANTUM.value, ChanQuantumLog2),
        host_log2: quantum_of(card_out.SHARING.HOST_QUANTUM.value, $clog2(MaxBurstBeats))
    };
    host_share_o.first <= card_out.SHARING.HOST_FIRST.value;
    for (int unsigned m = 0; m < HostShares; m++) host_share_o.weight[m] <= weight_of(card_out.HOST_WEIGHTS.VALUE.value[4*m+:4]);
  end
  logic [WeightW-1:0] walks;
  always_comb begin
    walks = '0;
    for (int unsigned s = 0; s < NumSlots; s++) walks |= weight_o[s];
  end
  always_ff @(posedge clk_i) begin
    weight_o[NumSlots]   <= weight_of(card_out.WEIGHTS.XDMA.value);
    weight_o[NumSlots+1] <= weight_of(card_out.WEIGHTS.DMA.value);
    weight_o[NumSlots+2] <= walks;
  end

  for (genvar s = 0; s < NumSlots; s++) begin : gen_slot
    localparam int unsigned C = 2 * s;  // completion ring
    localparam int unsigned E = 2 * s + 1;  // event ring
    via_slot_regs_pkg::via_slot_regs__in_t  slot_in;
    via_slot_regs_pkg::via_slot_regs__out_t slot_out;
    via_bell_regs_pkg::via_bell_regs__in_t  bell_in;
    via_bell_regs_pkg::via_bell_regs__out_t bell_out;

    via_slot_regs u_slot (
      .clk                 (clk_i),
      .rst_n               (rst_ni),
      .s_cpuif_req         (slot_req_q[s]),
      .s_cpuif_req_is_wr   (write_q),
      .s_cpuif_addr        (slot_addr_q[s]),
      .s_cpuif_wr_data     (wdata_q.data),
      .s_cpuif_wr_biten    (biten),
      .s_cpuif_req_stall_wr(),
      .s_cpuif_req_stall_rd(),
      .s_cpuif_rd_ack      (),
      .s_cpuif_rd_err      (slot_read[s].err),
      .s_cpuif_rd_data     (slot_read[s].data),
      .s_cpuif_wr_ack      (),
      .s_cpuif_wr_err      (),
      .hwif_in             (slot_in),
      .hwif_out            (slot_out)
    );

    via_bell_regs u_bell (
      .clk                 (clk_i),
      .rst_n               (rst_ni),
      .s_cpuif_req         (bell_req_q[s]),
      .s_cpuif_req_is_wr   (write_q),
      .s_cpuif_addr        (bell_addr_q[s]),
      .s_cpuif_wr_data     (wdata_q.data),
      .s_cpuif_wr_biten    (biten),
      .s_cpuif_req_stall_wr(),
      .s_cpuif_req_stall_rd(),
      .s_cpuif_rd_ack      (),
      .s_cpuif_rd_err      (bell_read[s].err),
      .s_cpuif_rd_data     (bell_read[s].data),
      .s_cpuif_wr_ack      (),
      .s_cpuif_wr_err      (),
      .hwif_in             (bell_in),
      .hwif_out            (bell_out)
    );

    always_ff @(posedge clk_i) weight_o[s] <= weight_of(slot_out.WEIGHT.VALUE.value);
    assign sched_o[s] = '{
            first: slot_out.SCHED.FIRST.value,
            limit: slot_out.SCHED.LIMIT.value,
            cap: slot_out.SCHED.CAP.value,
            rate: slot_out.RATE.RATE.value,
            depth: slot_out.RATE.DEPTH.value
        };
    assign table_o[s] = '{
            keep_end: card_out.KEEP.END.value,
            keep_first: card_out.KEEP.FIRST.value,
            base: slot_out.TABLE_BASE.MIB.value[CardAddrW-21:0],
            size_log2: slot_out.TABLE_CFG.SIZE_LOG2.value,
            enable: slot_out.TABLE_CFG.ENABLE.value
        };
    assign ctrl_o[s] = '{
            isolate: slot_out.CTRL.ISOLATE.value,
            reset: slot_out.CTRL.RESET.value,
            quiesce: slot_out.CTRL.QUIESCE.value,
            run: slot_out.CTRL.RUN.value
        };
    assign slot_in.STATUS.LOADED.next = stat_i[s].loaded;
    assign slot_in.STATUS.QUIET.next = stat_i[s].quiet;
    assign slot_in.STATUS.BUSY.next = stat_i[s].busy;
    assign slot_in.STATUS.ISOLATED.next = stat_i[s].isolated;
    assign slot_in.STATUS.CAUSE.next = stat_i[s].cause;
    assign slot_in.RING_STATUS.CMD_ON.next = cmd_on_i[s];
    assign slot_in.RING_STATUS.CPL_ON.next = ring_on_i[C];
    assign slot_in.RING_STATUS.EVT_ON.next = ring_on_i[E];
    assign slot_in.RING_STATUS.CMD_TAIL_ERR.next = cmd_tail_err_i[s];
    assign slot_in.RING_STATUS.CMD_BUS_ERR.next = cmd_bus_err_i[s];
    assign slot_in.RING_STATUS.CPL_ERR.next = ring_err_i[C];
    assign slot_in.RING_STATUS.EVT_ERR.next = ring_err_i[E];
    assign slot_in.CMD_HEAD.INDEX.next = cmd_head_i[s];
    assign slot_in.CPL_TAIL.INDEX.next = ring_tail_i[C];
    assign slot_in.EVT_TAIL.INDEX.next = ring_tail_i[E];
    // The wait in progress is counted as far as it has come.
    logic [31:0] count_q[8];
    meter_count_t meter_q;
    always_ff @(posedge clk_i) begin
      if (!held) begin
        count_q <= count_i[s];
        meter_q <= meter_i[s];
        for (int unsigned i = 0; i < 2; i++) if (meter_i[s].waits[i]) meter_q.waited[i] <= meter_i[s].waited[i] + time_i[31:0];
      end
    end
    assign slot_in.RD_TRANS.COUNT.next  = count_q[0];
    assign slot_in.WR_TRANS.COUNT.next  = count_q[1];
    assign slot_in.RD_MISS.COUNT.next   = count_q[2];
    assign slot_in.WR_MISS.COUNT.next   = count_q[3];
    assign slot_in.BEATS_IN.COUNT.next  = count_q[4];
    assign slot_in.BEATS_OUT.COUNT.next = count_q[5];
    assign slot_in.RD_BEATS.COUNT.next  = count_q[6];
    assign slot_in.WR_BEATS.COUNT.next  = count_q[7];
    assign slot_in.CARD_RD.COUNT.next   = meter_q.beats[0][0];
    assign slot_in.CARD_WR.COUNT.next   = meter_q.beats[1][0];
    assign slot_in.HOST_RD.COUNT.next   = meter_q.beats[0][1];
    assign slot_in.HOST_WR.COUNT.next   = meter_q.beats[1][1];
    assign slot_in.RD_WAIT.COUNT.next   = meter_q.waited[0];
    assign slot_in.WR_WAIT.COUNT.next   = meter_q.waited[1];

    // Sizes below the minimum are raised to it, which costs a register; the enable bits are delayed with them.
    always_ff @(posedge clk_i) begin
      cmd_cfg_o[s].size_log2  <= at_least_4(slot_out.CMD_CFG.SIZE_LOG2.value);
      ring_cfg_o[C].size_log2 <= at_least_4(slot_out.CPL_CFG.SIZE_LOG2.value);
      ring_cfg_o[E].size_log2 <= at_least_4(slot_out.EVT_CFG.SIZE_LOG2.value);
      cmd_cfg_o[s].enable     <= rst_ni && slot_out.CMD_CFG.ENABLE.value;
      ring_cfg_o[C].enable    <= rst_ni && slot_out.CPL_CFG.ENABLE.value;
      ring_cfg_o[E].enable    <= rst_ni && slot_out.EVT_CFG.ENABLE.value;
    end
    assign cmd_cfg_o[s].base = {slot_out.CMD_BASE_HI.ADDR.value, slot_out.CMD_BASE_LO.ADDR.value, 12'h0};
    assign ring_cfg_o[C].base = {slot_out.CPL_BASE_HI.ADDR.value, slot_out.CPL_BASE_LO.ADDR.value, 12'h0};
    assign ring_cfg_o[E].base = {slot_out.EVT_BASE_HI.ADDR.value, slot_out.EVT_BASE_LO.ADDR.value, 12'h0};

    assign bell_in.CMD_TAIL.INDEX.hwclr = !cmd_cfg_o[s].enable;
    assign bell_in.CPL_HEAD.INDEX.hwclr = !ring_cfg_o[C].enable;
    assign bell_in.EVT_HEAD.INDEX.hwclr = !ring_cfg_o[E].enable;
    assign cmd_tail_o[s] = bell_out.CMD_TAIL.INDEX.value;
    assign ring_head_o[C] = bell_out.CPL_HEAD.INDEX.value;
    assign ring_head_o[E] = bell_out.EVT_HEAD.INDEX.value;
    assign ring_arm_o[C] = bell_out.CPL_HEAD.ARM.value;
    assign ring_arm_o[E] = bell_out.EVT_HEAD.ARM.value;
  end

  for (genvar f = 1; f <= NumFn; f++) begin : gen_fn
    via_fn_regs_pkg::via_fn_regs__in_t  fn_in;
    via_fn_regs_pkg::via_fn_regs__out_t fn_out;

    via_fn_regs u_fn (
      .clk                 (clk_i),
      .rst_n               (rst_ni),
      .s_cpuif_req         (fn_req_q[f]),
      .s_cpuif_req_is_wr   (write_q),
      .s_cpuif_addr        (12'(fn_addr_q[f])),
      .s_cpuif_wr_data     (wdata_q.data),
      .s_cpuif_wr_biten    (biten),
      .s_cpuif_req_stall_wr(),
      .s_cpuif_req_stall_rd(),
      .s_cpuif_rd_ack      (),
      .s_cpuif_rd_err      (fn_read[f].err),
      .s_cpuif_rd_data     (fn_read[f].data),
      .s_cpuif_wr_ack      (),
      .s_cpuif_wr_err      (),
      .hwif_in             (fn_in),
      .hwif_out            (fn_out)
    );

    assign fn_ctrl_o[f] = '{
            reach: fn_out.REACH.SLOTS.value,
            up: fn_out.CTRL.UP.value,
            kind: attach_e'(fn_out.CTRL.KIND.value),
            slot: fn_out.CTRL.SLOT.value,
            stream: fn_out.CTRL.STREAM.value,
            mac: {fn_out.MAC_HI.VALUE.value, fn_out.MAC_LO.VALUE.value},
            base: {fn_out.BASE_HI.VALUE.value, fn_out.BASE_LO.VALUE.value},
            store: fn_out.CTRL.STORE.value,
            sectors: {fn_out.SECTORS_HI.VALUE.value, fn_out.SECTORS_LO.VALUE.value},
            read_only: fn_out.CTRL.READ_ONLY.value,
            moderate: fn_out.CTRL.MODERATE.value,
            header: fn_out.CTRL.HEADER.value,
            flush: '{
                limit: fn_out.FLUSH_LIMIT.LIMIT.value,
                failed: fn_out.FLUSH_DONE.FAILED.value,
                count: fn_out.FLUSH_DONE.COUNT.value
            },
            rows: fn_out.CONSOLE_SIZE.ROWS.value,
            cols: fn_out.CONSOLE_SIZE.COLS.value,
            look: '{count: fn_out.LOOK.COUNT.value, period: fn_out.LOOK.PERIOD.value},
            offer: {fn_out.OFFER_HI.VALUE.value, fn_out.OFFER_LO.VALUE.value}
        };
    assign fn_in.STATUS.PRESENT.next = fn_present_i[f];
    assign fn_in.STATUS.ATTACHED.next = fn_attached_i[f];
    assign fn_in.STATUS.DEVICE.next = fn_status_i[f];
    assign {fn_in.FEATURES_HI.VALUE.next, fn_in.FEATURES_LO.VALUE.next} = fn_features_i[f].negotiated;
    assign {fn_in.OFFERED_HI.VALUE.next, fn_in.OFFERED_LO.VALUE.next} = fn_features_i[f].offered;
    assign {fn_in.SUPPORTED_HI.VALUE.next, fn_in.SUPPORTED_LO.VALUE.next} = fn_features_i[f].supported;
    assign fn_in.FLUSH_ASKED.COUNT.next = fn_flushes_i[f];
    logic [31:0] count_q[3];
    always_ff @(posedge clk_i) if (!held) count_q <= fn_count_i[f];
    assign fn_in.TX_MESSAGES.COUNT.next  = count_q[0];
    assign fn_in.RX_MESSAGES.COUNT.next  = count_q[1];
    assign fn_in.CUT_MESSAGES.COUNT.next = count_q[2];
  end

  function automatic logic [3:0] at_least_4(input logic [3:0] v);
    return (v < 4'd4) ? 4'd4 : v;
  endfunction

  logic idle;
  assign idle = state_q == Idle && icap_idle && ~|{aw_valid, w_valid, ar_valid, axil_bvalid_o, axil_rvalid_o, ring_arm_o};
  always_ff @(posedge clk_i) idle_o <= idle;

endmodule
