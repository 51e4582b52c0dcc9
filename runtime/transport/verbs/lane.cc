// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/verbs/lane.h"

#include <algorithm>
#include <utility>

namespace railhead::transport::verbs {
namespace {

constexpr uint32_t kSignalEvery = 4;

}  // namespace

absl::Status Lane::Prepare(QueuePair& pair, size_t index) {
  const RequestId id = {.receive = true, .lane = index};
  return pair.PostReceives(pair.depths().receive, id.Pack());
}

uint64_t Lane::NextId(bool signaled) {
  ++posted_;
  if (signaled) last_signaled_ = posted_;
  const RequestId id = {.lane = index_, .number = posted_};
  return id.Pack();
}

absl::Status Lane::SendFrame(const Message& message, size_t bytes) {
  const bool signaled =
      bytes >= kAlwaysSignalBytes || !SignalOutstanding() || unsignaled_frames_ + 1 >= kSignalEvery;
  unsignaled_frames_ = signaled ? 0 : unsignaled_frames_ + 1;
  return pair_->Send(message, NextId(signaled), signaled);
}

absl::Status Lane::Send(const Message& message) {
  return pair_->Send(message, NextId(/*signaled=*/true), /*signaled=*/true);
}

absl::Status Lane::Probe(uint64_t remote_address, uint32_t remote_key) {
  return pair_->Probe(NextId(/*signaled=*/true), remote_address, remote_key);
}

void Lane::OnSent(uint64_t number) { completed_ = std::max(completed_, number); }

absl::Status Lane::RepostReceives() {
  if (receives_to_post_ == 0) return absl::OkStatus();
  const RequestId id = {.receive = true, .lane = index_};
  return pair_->PostReceives(std::exchange(receives_to_post_, 0), id.Pack());
}

absl::Duration Lane::LookForSilence(absl::Time now) {
  if (completed_ != completed_at_look_ || !SignalOutstanding()) {
    completed_at_look_ = completed_;
    silent_since_ = now;
  }
  return now - silent_since_;
}

}  // namespace railhead::transport::verbs
