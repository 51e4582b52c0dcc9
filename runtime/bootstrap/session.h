// SPDX-License-Identifier: Apache-2.0
//
// Frames of a connection that outlives its sockets: each arrives once and in order, also if a
// socket is lost and another one takes its place.
//
// Both sides count frames, from the kMeet that is a side's first one. A sender keeps each frame
// until the receiver has reported that it has arrived (kReceived, sometimes). On a new socket, each
// side first reports how many have arrived (kResume, redial.h); the other sends the next ones
// again.
//
// Pure: no socket or clock. Used by TreeConnections. Not thread-safe. Movable.
#ifndef RAILHEAD_RUNTIME_BOOTSTRAP_SESSION_H_
#define RAILHEAD_RUNTIME_BOOTSTRAP_SESSION_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/bootstrap/frame.h"

namespace railhead::bootstrap {

class Session {
 public:
  // Frames or bytes after which a receiver reports what has arrived. Small beside what a process
  // can keep, and large beside the traffic of a tree at rest.
  static constexpr uint64_t kReportFrames = 64;
  static constexpr size_t kReportBytes = size_t{64} << 10;

  // `received`: frames from kMeet on that arrived before this session was made.
  explicit Session(uint64_t received = 0) : received_(received) {}

  // Returns the bytes of the next frame for the present socket, if there is one.
  absl::string_view Add(FrameKind kind, absl::string_view payload);

  // Counts a frame from the present socket. Returns true if it is for the connection's user. An
  // error is a violation of the protocol.
  absl::StatusOr<bool> Receive(const Frame& frame);
  // Returns a report for the peer, if it is due; else "". It is not kept.
  std::string TakeReport();

  // Number of frames that have arrived: the socket may be replaced.
  uint64_t received() const { return received_; }
  // Returns what a new socket must carry first: all frames after the `arrived` that have reached
  // the peer. An error if they cannot be those of this session.
  absl::StatusOr<std::string> Resume(uint64_t arrived);

  // Number of frames kept.
  size_t kept() const { return kept_.size(); }

 private:
  absl::Status Forget(uint64_t arrived);

  uint64_t forgotten_ = 0;        // sent frames that are no longer kept
  std::deque<std::string> kept_;  // encoded, from the oldest on
  uint64_t received_;
  uint64_t reported_ = 0;
  size_t bytes_not_reported_ = 0;
};

}  // namespace railhead::bootstrap

#endif  // RAILHEAD_RUNTIME_BOOTSTRAP_SESSION_H_
