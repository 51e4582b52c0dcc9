// SPDX-License-Identifier: Apache-2.0
//
// The library's own voice: lines on standard error, each written whole, each naming the rank.
#ifndef RAILHEAD_RUNTIME_BASE_LOG_H_
#define RAILHEAD_RUNTIME_BASE_LOG_H_

#include <string>
#include <utility>

#include "absl/strings/string_view.h"

namespace railhead {

enum class LogLevel { kError, kWarn, kInfo, kDebug };

// A value: copy it to whoever has something to say. Safe to use from several threads.
class Logger {
 public:
  Logger() = default;
  Logger(LogLevel level, std::string speaker) : level_(level), speaker_(std::move(speaker)) {}

  // Writes "railhead: <speaker>: <level>: <text>" if `level` is wanted.
  void Write(LogLevel level, absl::string_view text) const;

  void Warn(absl::string_view text) const { Write(LogLevel::kWarn, text); }
  void Info(absl::string_view text) const { Write(LogLevel::kInfo, text); }

 private:
  LogLevel level_ = LogLevel::kWarn;
  std::string speaker_;
};

}  // namespace railhead

#endif  // RAILHEAD_RUNTIME_BASE_LOG_H_
