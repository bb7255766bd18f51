// SPDX-License-Identifier: Apache-2.0
//
// Entries of neighbour lists.

package tri_pkg;

  parameter int unsigned IdW = 28;
  parameter int unsigned PlaceW = 28;
  parameter int unsigned LinesW = 8;

  /// A neighbour and where its own list is; the first entry of a list is the vertex it belongs to.
  typedef struct packed {
    logic [PlaceW-1:0] place;  // its first line
    logic [LinesW-1:0] lines;  // zero: it has none
    logic [IdW-1:0]    id;     // all ones: no entry
  } entry_t;

  typedef logic [7:0][IdW-1:0] ids_t;  // of a line
  typedef logic [15:0][IdW-1:0] pair_t;  // of two lines

  /// What a list of a neighbour is for.
  typedef struct packed {
    logic              last;   // the last for this vertex
    logic [LinesW-1:0] lines;  // zero only with last: there is none
  } job_t;

  function automatic ids_t ids_of(input logic [511:0] line);
    for (int unsigned i = 0; i < 8; i++) ids_of[i] = line[64*i+:IdW];
  endfunction

endpackage
