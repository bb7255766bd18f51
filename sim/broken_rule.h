// Copyright Viaduct contributors.
// SPDX-License-Identifier: Apache-2.0
//
// A card whose assertions are checked is built with this before Verilator's library: what that would print
// goes to broken_rule.cpp.
#pragma once
#define VL_USER_STOP
#define VL_PRINTF via_verilated_print

extern "C" int via_verilated_print(const char* format, ...) __attribute__((format(printf, 1, 2)));
