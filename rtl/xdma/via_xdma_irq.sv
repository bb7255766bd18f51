// SPDX-License-Identifier: Apache-2.0
//
// Interrupt block of the XDMA-compatible function: enables, requests, vectors, and one MSI-X message for each time that a request and its
// enable become high together. A request that falls before its message was accepted sends none.
// Throughput: one message every three cycles. Latency: three cycles. Order: round robin. Source: PG195, IRQ block (0x2000).
// Misuse: a vector that the function does not have is never sent; the request counts as served.

module via_xdma_irq #(
  parameter int unsigned Channels = 2,   // all of them, H2C first
  parameter int unsigned Users    = 16,
  parameter int unsigned Vectors  = 18
) (
  input  logic                clk_i,
  input  logic                rst_ni,
  input  logic                reg_valid_i,    // register access in this cycle
  input  logic                reg_write_i,    // it is a write
  input  logic [         7:0] reg_addr_i,     // byte address in the block
  input  logic [        31:0] reg_wdata_i,    // data to write
  output logic [        31:0] reg_rdata_o,    // read data, in the same cycle
  input  logic [Channels-1:0] channel_i,      // levels: requests of the channels
  input  logic [   Users-1:0] user_i,         // levels: requests of the user
  output logic [   Users-1:0] user_ack_o,     // one-cycle pulse: its message was sent
  input  logic                hold_i,         // level: begin no new message
  output logic                msix_valid_o,
  output logic [         7:0] msix_vector_o,  // MSI-X vector
  input  logic                msix_ready_i,
  output logic                idle_o          // level: no message waits
);

  localparam bit ChannelsOk = via_pkg::param_in("via_xdma_irq Channels", Channels, 1, 8);
  localparam bit UsersOk = via_pkg::param_in("via_xdma_irq Users", Users, 1, 16);
  localparam bit VectorsOk = via_pkg::param_in("via_xdma_irq Vectors", Vectors, 1, 32);

  localparam int unsigned N = Channels + Users;  // sources: users, then channels
  localparam logic [31:0] Id = {12'h1fc, 4'h2, 8'h00, via_xdma_pkg::IdVersion};

  logic [Users-1:0] user_en_q;
  logic [Channels-1:0] channel_en_q;
  logic [N-1:0][4:0] vector_q;
  logic [N-1:0] pending, told_q, want, pick;
  logic any, choose, take, valid_q, fits;
  logic [N-1:0] source_q;
  logic chosen_q;
  logic [4:0] msg_q, vector;
  logic [Users-1:0] user_q, ack_q;
  logic [Channels-1:0] channel_q;

  always_ff @(posedge clk_i) begin
    user_q    <= user_i;
    channel_q <= channel_i;
  end

  // A source is selected in one cycle and sent in the next, if it still requests.
  assign pending = {channel_q & channel_en_q, user_q & user_en_q};
  assign want = pending & ~told_q;
  assign choose = !chosen_q && !valid_q && !hold_i;
  assign take = chosen_q && (source_q & want) != '0 && !hold_i;
  always_comb begin
    vector = '0;
    for (int unsigned i = 0; i < N; i++) if (source_q[i]) vector |= vector_q[i];
  end
  assign fits = 32'(vector) < Vectors;

  via_rr_arb #(
    .N(N)
  ) u_arb (
    .clk_i,
    .rst_ni,
    .req_i  (want),
    .ack_i  (choose),
    .gnt_o  (pick),
    .idx_o  (),
    .valid_o(any)
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      told_q   <= '0;
      chosen_q <= 1'b0;
      valid_q  <= 1'b0;
      ack_q    <= '0;
    end else begin
      told_q   <= (told_q | (take ? source_q : '0)) & pending;
      chosen_q <= choose && any;
      if (take) valid_q <= fits;
      else if (msix_ready_i) valid_q <= 1'b0;
      ack_q <= (valid_q && msix_ready_i) ? source_q[Users-1:0] : '0;
    end
  end
  always_ff @(posedge clk_i) begin
    if (choose) begin
      source_q <= pick;
    end
    if (take) msg_q <= vector;
  end
  assign msix_valid_o = valid_q;
  assign msix_vector_o = 8'(msg_q);
  assign user_ack_o = ack_q;
  assign idle_o = !valid_q && !chosen_q && want == '0 && ack_q == '0;

  // ---------------------------------------------------------------- registers
  // Vector registers hold four numbers each, one a byte: users from 0x80, channels from 0xa0.
  function automatic logic [31:0] vectors_at(input int unsigned base, input int unsigned count);
    logic [31:0] word;
    word = '0;
    for (int unsigned i = 0; i < 4; i++) if (32'(reg_addr_i[4:2]) * 4 + i < count) word[8*i+:5] = vector_q[base+32'(reg_addr_i[4:2])*4+i];
    return word;
  endfunction

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      user_en_q    <= '0;
      channel_en_q <= '0;
      vector_q     <= '0;
    end else if (reg_valid_i && reg_write_i) begin
      unique case (reg_addr_i)
        8'h04:   user_en_q <= reg_wdata_i[Users-1:0];
        8'h08:   user_en_q <= user_en_q | reg_wdata_i[Users-1:0];
        8'h0c:   user_en_q <= user_en_q & ~reg_wdata_i[Users-1:0];
        8'h10:   channel_en_q <= reg_wdata_i[Channels-1:0];
        8'h14:   channel_en_q <= channel_en_q | reg_wdata_i[Channels-1:0];
        8'h18:   channel_en_q <= channel_en_q & ~reg_wdata_i[Channels-1:0];
        default: ;
      endcase
      for (int unsigned i = 0; i < N; i++) begin
        if (reg_addr_i == ((i < Users) ? 8'h80 + 8'(i / 4 * 4) : 8'ha0 + 8'((i - Users) / 4 * 4))) begin
          vector_q[i] <= reg_wdata_i[8*((i<Users)?i%4 : (i-Users)%4)+:5];
        end
      end
    end
  end

  // Computed only for an access: it would cost simulation time in every cycle.
  always_comb begin
    reg_rdata_o = '0;
    if (reg_valid_i) begin
      unique case (reg_addr_i)
        8'h00: reg_rdata_o = Id;
        8'h04, 8'h08, 8'h0c: reg_rdata_o = 32'(user_en_q);
        8'h10, 8'h14, 8'h18: reg_rdata_o = 32'(channel_en_q);
        8'h40: reg_rdata_o = 32'(user_q);
        8'h44: reg_rdata_o = 32'(channel_q);
        8'h48: reg_rdata_o = 32'(user_q & user_en_q);
        8'h4c: reg_rdata_o = 32'(channel_q & channel_en_q);
        default: begin
          if (reg_addr_i[7:5] == 3'b100) reg_rdata_o = vectors_at(0, Users);
          if (reg_addr_i[7:5] == 3'b101) reg_rdata_o = vectors_at(Users, Channels);
        end
      endcase
    end
  end

endmodule
