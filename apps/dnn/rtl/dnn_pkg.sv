// SPDX-License-Identifier: Apache-2.0
//
// Sizes of the network, and numbers: 16 bits, signed, 32 of them in a line of 64 bytes.

package dnn_pkg;

  parameter int unsigned Lanes = 32;
  parameter int unsigned Side = 28;  // of an image; each row is a line
  parameter int unsigned Kernel = 5;  // side of a window
  parameter int unsigned Window = Kernel * Kernel;
  parameter int unsigned Maps1 = 20;
  parameter int unsigned Side1 = 12;  // behind the first convolution and its pooling
  parameter int unsigned Maps2 = 50;
  parameter int unsigned Side2 = 4;
  parameter int unsigned Hidden = 500;
  parameter int unsigned Classes = 10;

  // Lines of weights of one output. The last lane of the last line is its bias.
  parameter int unsigned Lines1 = 1;
  parameter int unsigned Lines2 = Window;
  parameter int unsigned Lines3 = Maps2 * Side2 * Side2 / Lanes + 1;
  parameter int unsigned Lines4 = (Hidden + Lanes) / Lanes;

  // Order in the memory: those that are kept on the chip first.
  parameter int unsigned At2 = Maps1 * Lines1;
  parameter int unsigned At4 = At2 + Maps2 * Lines2;
  parameter int unsigned At3 = At4 + Classes * Lines4;
  parameter int unsigned Weights = At3 + Hidden * Lines3;

  typedef logic signed [15:0] number_t;
  typedef number_t [Lanes-1:0] line_t;

  typedef enum logic [1:0] {
    Conv1,
    Conv2,
    Full1,
    Full2
  } layer_e;

endpackage
