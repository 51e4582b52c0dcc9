// SPDX-License-Identifier: Apache-2.0
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

#include "tests/nccl/stock/cuda/api.h"

namespace railhead::stock {
namespace {

void Write(const char* format, va_list arguments) {
  char line[512];
  std::vsnprintf(line, sizeof line, format, arguments);
  std::fprintf(stderr, "emulated GPU: %s\n", line);
}

}  // namespace

void Log(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  Write(format, arguments);
  va_end(arguments);
}

void GiveUp(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  Write(format, arguments);
  va_end(arguments);
  std::abort();
}

}  // namespace railhead::stock
