// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/log.h"

#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "base/printable_text.h"

namespace railhead {
namespace {

absl::string_view Name(LogLevel level) {
  switch (level) {
    case LogLevel::kError:
      return "error";
    case LogLevel::kWarn:
      return "warning";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kDebug:
      return "debug";
  }
  return "";
}

}  // namespace

void Logger::Write(LogLevel level, absl::string_view text) const {
  if (level > level_) return;
  const std::string line =
      absl::StrCat("railhead: ", PrintableText(speaker_), speaker_.empty() ? "" : ": ", Name(level),
                   ": ", PrintableText(text), "\n");
  // One write call, so that the lines of several ranks on one terminal do not mix. If standard
  // error cannot be written, there is no way to report it.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace railhead
