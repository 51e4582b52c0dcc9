// SPDX-License-Identifier: Apache-2.0
//
// The frames that ranks send to each other on the connections of the rendezvous: magic, kind,
// length, payload. A stranger's first bytes are not the magic and are recognised at once.
#ifndef RAILHEAD_RUNTIME_BOOTSTRAP_FRAME_H_
#define RAILHEAD_RUNTIME_BOOTSTRAP_FRAME_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace railhead::bootstrap {

enum class FrameKind : uint32_t {
  // The handshake (handshake.h), and what a host adds to it.
  kHello = 1,      // guest -> host: who I am
  kChallenge = 2,  // host -> guest: prove it
  kProof = 3,      // guest -> host
  kAccept = 4,     // host -> guest: the host's own proof
  kRefuse = 5,     // host -> guest: why I do not take you
  kWelcome = 6,    // 0 -> rank: everyone is here; where your part of the tree is
  // In the tree (node.h).
  kGather = 7,    // up: parts of an exchange
  kAll = 8,       // down: what the root makes of them
  kAsk = 9,       // down: the exchange takes too long; for whom do you wait?
  kMissing = 10,  // up: for these
  kFail = 11,     // both ways: the job has failed; the text says who and why
  kBye = 12,      // to neighbours: I need nobody any more
  kDone = 13,     // up: nobody below me needs anybody; down: nobody at all does
  // In the tree, when a rank stands still (inquiry.h).
  kCall = 14,       // up: please ask all where they are
  kQuestion = 15,   // down: where are you?
  kTestimony = 16,  // up: there
  kReport = 17,     // down: what comes of it
  // In the tree (node.h).
  kGone = 18,     // both ways: this rank's connection has ended
  kLocate = 19,   // towards a rank: where can you be reached?
  kLocated = 20,  // back to who has asked: there
  // While the ranks gather.
  kNotice = 21,  // 0 -> rank: a text about one that cannot be let in
};
inline constexpr FrameKind kLastFrameKind = FrameKind::kNotice;

struct Frame {
  FrameKind kind = FrameKind::kHello;
  std::string payload;
};

std::string EncodeFrame(FrameKind kind, absl::string_view payload);

// Cuts a stream of bytes into frames.
class FrameReader {
 public:
  // Frames with more than `limit` bytes of payload are refused before they are read.
  explicit FrameReader(size_t limit) : limit_(limit) {}

  // Where arriving bytes are appended.
  std::string* buffer() { return &buffer_; }

  // The next whole frame, nullopt if more bytes are needed, InvalidArgument if these bytes are not
  // of this protocol (as soon as that can be known).
  absl::StatusOr<std::optional<Frame>> Next();

  void set_limit(size_t limit) { limit_ = limit; }

 private:
  size_t limit_;
  std::string buffer_;
};

}  // namespace railhead::bootstrap

#endif  // RAILHEAD_RUNTIME_BOOTSTRAP_FRAME_H_
