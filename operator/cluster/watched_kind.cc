// SPDX-License-Identifier: Apache-2.0
#include "operator/cluster/watched_kind.h"

#include <spdlog/spdlog.h>

namespace railhead::op {

void WatchTrouble::Note(const absl::Status& end) {
  if (absl::IsCancelled(end)) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  std::string now(end.message());
  if (now != message_ && !end.ok()) spdlog::warn("watching {}: {}", resource_, now);
  message_ = std::move(now);
}

std::string WatchTrouble::Message() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return message_;
}

}  // namespace railhead::op
