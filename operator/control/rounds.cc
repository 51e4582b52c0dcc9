// SPDX-License-Identifier: Apache-2.0
#include "operator/control/rounds.h"

#include <spdlog/spdlog.h>

#include <optional>
#include <utility>

namespace railhead::op {
namespace {

constexpr char kRound[] = "round";
constexpr absl::Duration kPatience = absl::Seconds(60);  // a wait ends earlier where there is work

}  // namespace

Rounds::Rounds(std::string name, const kube::BackoffOptions& backoff)
    : name_(std::move(name)), queue_(backoff) {}

void Rounds::Ask() { queue_.Add(kRound); }

void Rounds::AskAfter(absl::Duration pause) { queue_.AddAfter(kRound, pause); }

void Rounds::Run(const std::stop_token& stop, const std::function<absl::Status()>& round) {
  const std::stop_callback on_stop(stop, [this] { queue_.ShutDown(); });
  while (!queue_.is_shut_down()) {
    const std::optional<std::string> item = queue_.Take(kPatience);
    if (!item) continue;
    const absl::Status done = round();
    const std::string trouble(done.message());
    if (trouble != trouble_ && !done.ok()) spdlog::warn("{}: {}", name_, trouble);
    trouble_ = trouble;
    if (done.ok()) {
      queue_.Finish(*item);
    } else {
      queue_.Retry(*item);
    }
  }
}

}  // namespace railhead::op
