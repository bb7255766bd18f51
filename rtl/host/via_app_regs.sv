// SPDX-License-Identifier: Apache-2.0
//
// Accesses to the registers of the apps, from two sources: 0 is the management function, 1 the user BAR of the XDMA-compatible function, which
// reaches only the slots that the card's owner has opened to it.
//
// Throughput: one access at a time, the sources alternate. Latency: two cycles and that of the app, AppTimeout cycles at most; as much
// again behind an access of the other source. Order: that of each source. An access that cannot be served (no such slot, slot not open to
// the source, empty, isolated), or that the app refuses, reads all ones and writes nothing.
// Misuse: an app that does not respond within AppTimeout cycles raises reg_timeout_o of its slot (one pulse), which isolates it: a late
// response could be mistaken for that of the next access. An access that has reached the app is completed even if the slot is closed to
// source 1 meanwhile; source 0 waits for it.

module via_app_regs
  import via_pkg::*;
#(
  parameter int unsigned AppTimeout = 256  // cycles
) (
  input  logic                    clk_i,
  input  logic                    rst_ni,
  // sources; a request is held until its response
  input  reg_req_t                s_req_i      [       2],  // register access
  input  logic     [         3:0] s_slot_i     [       2],  // slot it is for
  input  logic     [         1:0] s_valid_i,
  output logic     [         1:0] s_rvalid_o,               // one-cycle pulse: the access is complete
  output logic     [        31:0] s_rdata_o,                // read data of both sources, with s_rvalid_o
  input  logic     [        15:0] reach_i,                  // level: slots open to source 1
  // slots
  output reg_req_t                reg_o,                    // to all slots, with reg_valid_o
  output logic     [NumSlots-1:0] reg_valid_o,              // held until the response or the time-out
  input  logic     [NumSlots-1:0] reg_open_i,               // level: an app is there to respond
  input  logic     [NumSlots-1:0] reg_rvalid_i,             // one-cycle pulse: the app responds
  input  logic     [        31:0] reg_rdata_i  [NumSlots],  // read data, with reg_rvalid_i
  input  logic     [NumSlots-1:0] reg_err_i,                // the app refuses the access, with reg_rvalid_i
  output logic     [NumSlots-1:0] reg_timeout_o,            // one-cycle pulse: no response in time
  output logic                    idle_o                    // level: no access is in progress
);

  localparam bit AppTimeoutOk = param_in("via_app_regs AppTimeout", AppTimeout, 1, 131071);

  typedef enum logic [1:0] {
    Idle,
    Look,
    App,
    Late   // no response came
  } state_e;
  state_e state_q;
  logic source_q, pick, ends, late, there;
  logic [1:0] wants, rvalid_q;
  logic [NumSlots-1:0] valid_q, late_q;  // the states App and Late, by slot
  logic [3:0] slot_q;
  logic [SlotW-1:0] slot;
  logic [$clog2(AppTimeout + 1)-1:0] wait_q;

  // A request is still valid in the cycle of its response.
  assign wants = s_valid_i & ~rvalid_q;
  assign pick  = wants[1] && !(wants[0] && source_q);  // the source served last waits
  assign slot  = slot_q[SlotW-1:0];
  assign there = 32'(slot_q) < NumSlots && reg_open_i[slot] && (!source_q || reach_i[slot_q]);
  assign late  = 32'(wait_q) == AppTimeout;
  assign ends  = reg_rvalid_i[slot] || !reg_open_i[slot];

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q  <= Idle;
      source_q <= 1'b0;
      rvalid_q <= '0;
      valid_q  <= '0;
      late_q   <= '0;
    end else begin
      rvalid_q <= '0;
      late_q   <= '0;
      unique case (state_q)
        Idle: begin
          if (wants != '0) begin
            state_q  <= Look;
            source_q <= pick;
          end
        end
        Look: begin
          state_q <= there ? App : Idle;
          if (there) valid_q[slot] <= 1'b1;
          else rvalid_q[source_q] <= 1'b1;
        end
        App: begin
          if (ends || late) begin
            state_q <= ends ? Idle : Late;
            valid_q <= '0;
          end
          if (ends) rvalid_q[source_q] <= 1'b1;
          else if (late) late_q[slot] <= 1'b1;
        end
        default: begin
          state_q <= Idle;
          rvalid_q[source_q] <= 1'b1;
        end
      endcase
    end
  end
  always_ff @(posedge clk_i) begin
    if (state_q == Idle) begin
      reg_o  <= s_req_i[pick];
      slot_q <= s_slot_i[pick];
    end
    wait_q <= (state_q == App) ? wait_q + 1'b1 : '0;
    if (state_q != Idle) s_rdata_o <= (state_q == App && reg_rvalid_i[slot] && !reg_err_i[slot]) ? reg_rdata_i[slot] : '1;
  end

  assign reg_valid_o = valid_q;
  assign reg_timeout_o = late_q;
  assign s_rvalid_o = rvalid_q;
  assign idle_o = state_q == Idle && rvalid_q == '0 && s_valid_i == '0;

endmodule
