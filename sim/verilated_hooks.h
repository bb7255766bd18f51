// Copyright Viaduct contributors.
// SPDX-License-Identifier: Apache-2.0
//
// Included before Verilator's library: what that prints, and its ends of a simulation, go to broken_rule.cpp
// (the card) and shim/slot_shim.cpp (an app), not to standard output and abort().
#pragma once
#define VL_USER_FATAL
#define VL_USER_FINISH
#define VL_USER_STOP
#define VL_PRINTF via_verilated_print

extern "C" int via_verilated_print(const char* format, ...) __attribute__((format(printf, 1, 2)));
