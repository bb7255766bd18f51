// SPDX-License-Identifier: Apache-2.0
//
// Pixels of the pipeline: groups of four, and where they are.

package flow_pkg;

  parameter int unsigned Pixels = 4;  // of a group

  /// Where a group is. It goes with the group through every stage.
  typedef struct packed {
    logic [Pixels-1:0] valid;  // of the image; what is not has values of zero
    logic              first;  // group of a line
    logic              last;   // group of a line
    logic [2:0]        row;    // of the image, 7 for the eighth and all behind it
    logic              close;  // group of the image
  } tag_t;

endpackage
