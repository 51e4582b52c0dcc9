// SPDX-License-Identifier: Apache-2.0
#include "operator/cluster/watched_kind.h"

#include <spdlog/spdlog.h>

namespace railhead::op {

void WatchTrouble::Note(const std::string& space, const absl::Status& end) {
  if (absl::IsCancelled(end)) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  std::string now(end.message());
  std::string& last = messages_[space];
  if (now != last && !end.ok()) spdlog::warn("watching {}: {}", resource_, now);
  last = std::move(now);
}

std::string WatchTrouble::Message() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [space, message] : messages_) {
    if (!message.empty()) return message;
  }
  return "";
}

}  // namespace railhead::op
