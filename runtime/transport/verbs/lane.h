// SPDX-License-Identifier: Apache-2.0
//
// One queue pair of a channel, and its requests in flight.
//
// Switches that spread flows over equal paths (ECMP) distinguish flows by addresses and ports. All
// packets of a queue pair are one flow on one path, which other flows may share. Several queue
// pairs are several flows.
#ifndef RAILHEAD_RUNTIME_TRANSPORT_VERBS_LANE_H_
#define RAILHEAD_RUNTIME_TRANSPORT_VERBS_LANE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "runtime/transport/verbs/queue_pair.h"
#include "runtime/transport/verbs/settings.h"

namespace railhead::transport::verbs {

// Messages of at least this size are signaled: the cost is negligible compared with the copy, and
// the slot is freed as early as possible. Every fourth smaller frame is signaled, too.
inline constexpr size_t kAlwaysSignalBytes = 4096;

// Content of a work request's id.
struct RequestId {
  bool receive = false;
  size_t lane = 0;
  uint64_t number = 0;  // number of the send, from 1

  // From the highest bit: 1 for receives, 3 of lane, 60 of number.
  static constexpr int kReceiveShift = 63;
  static constexpr int kLaneShift = 60;
  static constexpr uint64_t kLaneMask = 0x7;
  static constexpr uint64_t kNumberMask = (uint64_t{1} << kLaneShift) - 1;

  uint64_t Pack() const {
    return uint64_t{receive} << kReceiveShift | (lane & kLaneMask) << kLaneShift |
           (number & kNumberMask);
  }
  static RequestId Unpack(uint64_t packed) {
    return {.receive = packed >> kReceiveShift != 0,
            .lane = packed >> kLaneShift & kLaneMask,
            .number = packed & kNumberMask};
  }
};
static_assert(kMostQpsPerRail <= RequestId::kLaneMask + 1);

class Lane {
 public:
  // `pair` is initialized, and Prepare was called. `index` is 0 for the first.
  Lane(std::shared_ptr<QueuePair> pair, size_t index) : pair_(std::move(pair)), index_(index) {}

  // Fills the receive queue of a newly initialized queue pair.
  static absl::Status Prepare(QueuePair& pair, size_t index);

  const std::shared_ptr<QueuePair>& pair() const { return pair_; }

  bool HasRoom() const { return posted_ - completed_ < pair_->depths().send; }
  // Returns true if a completion is outstanding.
  bool SignalOutstanding() const { return last_signaled_ > completed_; }
  // Returns true if requests are in flight that no outstanding completion covers.
  bool Unsignaled() const { return posted_ > completed_ && !SignalOutstanding(); }

  // Each needs room. SendFrame decides whether to signal.
  absl::Status SendFrame(const Message& message, size_t bytes);
  absl::Status Send(const Message& message);
  absl::Status Probe(uint64_t remote_address, uint32_t remote_key);
  // Number of the last one.
  uint64_t posted() const { return posted_; }

  // Processes the completion of a send, which covers all sends up to `number`.
  void OnSent(uint64_t number);
  uint64_t completed() const { return completed_; }

  // Notes that a receive was used; the next RepostReceives replaces it.
  void OnReceived() { ++receives_to_post_; }
  absl::Status RepostReceives();

  // Returns the time without any completion while sends are outstanding; call regularly.
  absl::Duration LookForSilence(absl::Time now);

 private:
  uint64_t NextId(bool signaled);

  std::shared_ptr<QueuePair> pair_;
  size_t index_;

  // Numbers of sends, from 1.
  uint64_t posted_ = 0;
  uint64_t completed_ = 0;
  uint64_t last_signaled_ = 0;
  uint32_t unsignaled_frames_ = 0;
  uint32_t receives_to_post_ = 0;

  absl::Time silent_since_ = absl::InfinitePast();
  uint64_t completed_at_look_ = 0;
};

}  // namespace railhead::transport::verbs

#endif  // RAILHEAD_RUNTIME_TRANSPORT_VERBS_LANE_H_
