// SPDX-License-Identifier: Apache-2.0
//
// Offers something at every port of via_hs_ports, and with +fault=NAME changes one bit of it while it waits. Prints "by the rules" at the
// end; a rule that is broken ends the simulation before.

module via_hs_ports_tb
  import via_pkg::*;
;

  localparam int unsigned N = 3;
  logic clk = 1'b0, rst_n = 1'b0;
  logic [4:0] one;
  logic [1:0] one_side;
  logic one_valid = 1'b0, bare_valid = 1'b0;
  cpl_t vec[N];
  logic [7:0] vec_all;
  logic [N-1:0] vec_bit, vec_valid = '0;
  logic [2:0] from1[N:1], flat[N];
  logic [N:1] from1_bit, from1_valid = '0;
  logic  flat_valid[N];
  string fault;

  via_hs_ports #(
    .N(N),
    .T(logic [4:0])
  ) u_ports (
    .clk_i        (clk),
    .rst_ni       (rst_n),
    .one_i        (one),
    .one_side_i   (one_side),
    .one_valid_i  (one_valid),
    .one_ready_o  (),
    .vec_i        (vec),
    .vec_bit_i    (vec_bit),
    .vec_all_i    (vec_all),
    .vec_valid_i  (vec_valid),
    .vec_ready_o  (),
    .from1_i      (from1),
    .from1_bit_i  (from1_bit),
    .from1_valid_i(from1_valid),
    .from1_ready_o(),
    .flat_data_i  (flat),
    .flat_valid_i (flat_valid),
    .flat_ready_o (),
    .bare_valid_i (bare_valid),
    .bare_ready_o ()
  );

  task automatic tick;
    #1 clk = 1'b1;
    #1 clk = 1'b0;
  endtask

  initial begin
    if (!$value$plusargs("fault=%s", fault)) fault = "";
    one        = '0;
    one_side   = '0;
    vec        = '{default: '0};
    vec_bit    = '0;
    vec_all    = '0;
    from1      = '{default: '0};
    from1_bit  = '0;
    flat       = '{default: '0};
    flat_valid = '{default: 1'b0};
    tick();
    rst_n = 1'b1;
    tick();
    // All but the first of each array.
    one_valid   = 1'b1;
    bare_valid  = 1'b1;
    vec_valid   = 3'b110;
    from1_valid = 3'b110;
    flat_valid  = '{1'b0, 1'b1, 1'b1};
    tick();
    case (fault)
      "one": one[4] = 1'b1;
      "one_side": one_side[1] = 1'b1;
      "one_valid": one_valid = 1'b0;
      "vec": vec[2].status = StFull;
      "vec_bit": vec_bit[1] = 1'b1;
      "vec_all": vec_all[7] = 1'b1;
      "vec_valid": vec_valid[2] = 1'b0;
      "from1": from1[3][2] = 1'b1;
      "from1_bit": from1_bit[2] = 1'b1;
      "flat": flat[1][2] = 1'b1;
      "flat_valid": flat_valid[2] = 1'b0;
      "bare_valid": bare_valid = 1'b0;
      default: begin  // where nothing is offered
        vec[0]       = '1;
        vec_bit[0]   = 1'b1;
        from1[1]     = '1;
        from1_bit[1] = 1'b1;
        flat[0]      = '1;
      end
    endcase
    tick();
    $display("by the rules");
    $finish;
  end

endmodule
