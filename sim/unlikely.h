// Copyright Viaduct contributors.
// SPDX-License-Identifier: Apache-2.0
//
// Included in front of what Verilator generates, behind all other headers. In any one cycle most conditions
// of a model are false: a FIFO is not written, a part is left out, a register keeps its value. The compiler,
// which takes either case for as likely, is told, and keeps the code of the other one out of the way. All
// code of a model is run in every cycle and does not fit into the instruction cache, so this is worth a
// seventh of the time.
#pragma once
#define if(...) if (__builtin_expect(!!(__VA_ARGS__), 0))
