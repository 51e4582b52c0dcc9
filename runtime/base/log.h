// SPDX-License-Identifier: Apache-2.0
//
// Logger: atomic lines on stderr with the rank.
#ifndef RAILHEAD_RUNTIME_BASE_LOG_H_
#define RAILHEAD_RUNTIME_BASE_LOG_H_

#include <string>
#include <utility>

#include "absl/strings/string_view.h"

namespace railhead {

enum class LogLevel { kError, kWarn, kInfo, kDebug };

// A copyable value. Thread-safe.
class Logger {
 public:
  Logger() = default;
  Logger(LogLevel level, std::string speaker) : level_(level), speaker_(std::move(speaker)) {}

  // Writes "railhead: <speaker>: <level>: <text>" if `level` is enabled, on one line of printable
  // text.
  void Write(LogLevel level, absl::string_view text) const;

  void Warn(absl::string_view text) const { Write(LogLevel::kWarn, text); }
  void Info(absl::string_view text) const { Write(LogLevel::kInfo, text); }

 private:
  LogLevel level_ = LogLevel::kWarn;
  std::string speaker_;
};

}  // namespace railhead

#endif  // RAILHEAD_RUNTIME_BASE_LOG_H_
