// Copyright Viaduct contributors.
// SPDX-License-Identifier: Apache-2.0
//
// One DRAM channel: controller, banks, data bus, and the memory itself.
//
// AXI bursts become commands, one for each DRAM burst they touch. Answers keep the order of the requests. A
// write is answered when the controller has it; data is stored at once, so who waited for the response reads
// what was written. There are two controllers:
//
// Without machines it opens rows ahead of need and issues the oldest command whose row is open, among the
// first `queue`; reads go before writes until the write buffer fills. Consecutive bursts of DRAM go to
// consecutive bank groups, rows follow each other over the banks of a group.
//
// With machines it is the kind that FPGA vendors supply (AMD PG150 and PG353, "Memory Controller"): one
// machine for each bank group, all of whose commands stay in order. Its first stage closes and opens rows for
// one command at a time and hands it to the second, which waits for the row and issues the column command.
// Each clock of the controller takes a command in, and sends at most one that opens, one that closes and one
// to a column; of several of these the machines take turns, and reads go before writes. AXI bursts go in as
// wholes, reads and writes in turn. Consecutive bursts of DRAM go to consecutive bank groups; two columns
// follow each other in a bank, whose row the second one closes; then comes the next bank
// (ROW_COLUMN_BANK_INTLV with AUTO_AP_COL_A3).
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "axi.h"
#include "clock.h"
#include "ring.h"
#include "viaduct_sim.h"

namespace via {

class Dram {
 public:
  // Throws std::bad_alloc if the system has no room for the address range.
  Dram(const vsim_dram& config, vsim_counters& counters, unsigned channel);
  ~Dram();
  Dram(const Dram&) = delete;
  Dram& operator=(const Dram&) = delete;
  static std::string check(const vsim_dram& config);

  void edge(const Clock& clock, const AxiRequest& shell);
  const AxiResponse& response() const { return response_; }
  // The memory itself, for who fills it or looks at it at no cost of time.
  uint8_t* memory() { return memory_; }
  uint64_t size() const { return size_; }

  // Nothing the shell waits for, and it asks for nothing. Writes that were answered may still be on their way
  // to the banks.
  bool rests(const AxiRequest& shell) const {
    return asked_.empty() && returns_.empty() && owed_ == 0 && !shell.arvalid && !shell.awvalid;
  }
  bool sleeps(const AxiRequest& shell) const { return writes_.empty() && held_ == 0 && rests(shell); }
  // Function-level reset: forgets what is in flight; memory keeps its content.
  void reset();

 private:
  struct Bank {
    int64_t row = -1;  // open row, -1: none
    uint64_t cas_ok = 0, precharge_ok = 0, activate_ok = 0;
  };
  struct Place {
    uint32_t bank;
    int64_t row;
    bool closes;  // a column command there closes the row
  };
  struct Command {
    Place place;
    uint64_t number;      // reads: index into returns_
    bool opened = false;  // a row was opened for it
    bool write = false;
    bool last = true;  // writes: of their AXI burst
  };
  // Commands of a bank group, oldest first: those before `open` have their rows opened or open, the others
  // wait for that.
  struct Machine {
    std::vector<Command> commands;
    size_t open = 0;
    uint64_t ready_ps = 0;  // the first stage may look at its next command
  };
  struct Return {
    uint64_t addr;
    uint32_t beats;
    bool failed, last, done;
    uint64_t ready_ps;
  };
  struct Burst {
    uint64_t addr;
    uint32_t beats;
  };
  struct Response {
    uint64_t ready_ps;
    uint8_t resp;
  };

  void accept(uint64_t now, const AxiRequest& shell);
  void accept_beat(uint64_t now, const AxiRequest& shell);
  void expand(uint64_t now);
  Command next_read(uint64_t now);
  void refresh(uint64_t now);
  void choose_direction();
  std::vector<Command>& active() { return draining_ ? writes_ : reads_; }
  void open_rows(uint64_t now, uint64_t end);
  bool issue(uint64_t now, uint64_t end);
  void issue_at(uint64_t cas, const Command& command);
  uint64_t open_row(uint64_t now, Command& command);
  void run_machines(uint64_t now, uint64_t end);
  void take_in(uint64_t now);
  void rows_of_machines(uint64_t now);
  void column_of_machines(uint64_t now);
  void make_response(uint64_t now);
  Place place(uint64_t addr) const;
  uint32_t group_of(const Place& place) const { return place.bank & (config_.groups - 1); }

  const vsim_dram config_;
  uint64_t &read_bytes_, &write_bytes_, &row_hits_, &row_misses_;
  uint64_t size_;
  uint8_t* memory_;
  AxiResponse response_;

  Ring<Burst> asked_;         // read bursts not yet expanded completely
  Ring<Return> returns_;      // read commands in order, until their data is handed over
  uint32_t returned_ = 0;     // beats of the first one that have been
  Ring<Burst> write_bursts_;  // from AW to the last W
  uint32_t write_beats_ = 0;  // of the first one
  uint8_t resp_ = kOkay;
  Ring<Response> responses_;
  uint32_t owed_ = 0;  // write bursts whose B has not been accepted

  // At most `queue` each, oldest first; with machines writes that have not been taken in.
  std::vector<Command> reads_, writes_;
  std::vector<Machine> machines_;
  size_t held_ = 0;                  // commands of all machines
  bool taking_ = false;              // an AXI burst is being taken in
  bool taking_write_ = false;        // it is, or the last one was, a write
  uint32_t turn_ = 0;                // machine that goes first
  uint64_t next_clock_ps_ = 0;       // of the controller
  uint64_t last_read_ps_ = 0;        // that a machine sent, or that was made up
  bool draining_ = false;            // writes have the bus
  uint32_t batch_ = 0;               // commands issued since that last changed
  std::vector<Bank> banks_;          // a bank's group is the lowest bits of its number
  std::vector<uint64_t> column_ok_;  // by bank group: next column command to it
  std::vector<uint64_t> claimed_;    // by bank: last pass in which its row was spoken for
  uint64_t pass_ = 0;
  uint64_t activates_[4] = {};  // last four, the oldest at activate_turn_
  uint32_t activate_turn_ = 0;
  uint64_t next_cas_ = 0, read_cas_ok_ = 0, write_cas_ok_ = 0;
  uint64_t next_refresh_;
};

}  // namespace via
