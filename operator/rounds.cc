// SPDX-License-Identifier: Apache-2.0
#include "operator/rounds.h"

#include <spdlog/spdlog.h>

#include <optional>
#include <utility>

namespace railhead::op {
namespace {

constexpr char kRound[] = "round";
constexpr absl::Duration kPatience = absl::Seconds(60);  // a wait ends earlier where there is work

// Logs `now` where it is trouble, and not what was told before.
void TellOnce(std::string& told, const std::string& about, const absl::Status& now) {
  const std::string words(now.message());
  if (words != told && !now.ok()) spdlog::warn("{}: {}", about, words);
  told = words;
}

}  // namespace

Rounds::Rounds(std::string name, const kube::BackoffOptions& backoff)
    : name_(std::move(name)), queue_(backoff) {}

void Rounds::Ask() { queue_.Add(kRound); }

void Rounds::AskAfter(absl::Duration pause) { queue_.AddAfter(kRound, pause); }

void Rounds::TellEnd(const std::string& resource, const absl::Status& end) {
  if (absl::IsCancelled(end)) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  TellOnce(watch_trouble_[resource], name_ + ": watching " + resource, end);
}

void Rounds::Run(const std::stop_token& stop, const std::function<absl::Status()>& round) {
  const std::stop_callback on_stop(stop, [this] { queue_.ShutDown(); });
  while (!queue_.is_shut_down()) {
    const std::optional<std::string> item = queue_.Take(kPatience);
    if (!item) continue;
    const absl::Status done = round();
    TellOnce(trouble_, name_, done);
    if (done.ok()) {
      queue_.Finish(*item);
    } else {
      queue_.Retry(*item);
    }
  }
}

}  // namespace railhead::op
