// Copyright Viaduct contributors.
// SPDX-License-Identifier: Apache-2.0
//
// What happens when an assertion of the shell fails: one line on standard error says which rule was broken at
// which port, and the process ends. Nothing the card does after that could be trusted. Only cards that are
// built with assertions have any.
#include <unistd.h>
#include <verilated.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "verilated_hooks.h"

namespace {

// What the library has said and nobody was told: a failed assertion is said, then comes vl_stop().
thread_local std::string said;

}  // namespace

extern "C" int via_verilated_print(const char* format, ...) {
  char text[1024];
  va_list arguments;
  va_start(arguments, format);
  const int length = std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  said += text;
  return length;
}

// The library says "[time] %Error: FILE:LINE: Assertion failed in PLACE.RULE: words".
[[noreturn]] static void end(const char* file, int line) {
  const std::string mark = "Assertion failed in ";
  const size_t at = said.find(mark);
  std::string what = at == std::string::npos ? said : said.substr(at + mark.size());
  while (!what.empty() && what.back() == '\n') what.pop_back();
  // As one piece: other threads may be printing. Handlers of exit() would find the card in the middle of an
  // edge.
  const std::string tell = "error: the card broke a rule of its RTL and was stopped: " + what + " (" + file +
                           ":" + std::to_string(line) + ")\n";
  (void)!write(STDERR_FILENO, tell.data(), tell.size());
  _exit(EXIT_FAILURE);
}

void vl_stop(const char* file, int line, const char*) {
  end(file, line);
}
void vl_finish(const char* file, int line, const char*) {
  end(file, line);
}
void vl_fatal(const char* file, int line, const char*, const char* message) {
  said += message;
  end(file, line);
}
