// SPDX-License-Identifier: Apache-2.0
//
// Frames on the connections of the rendezvous and the tree: magic, kind, length, payload. Other
// protocols are recognized by the magic.
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
  // Handshake (handshake.h), and further messages of a server.
  kHello = 1,      // client -> server: identity
  kChallenge = 2,  // server -> client: request for proof
  kProof = 3,      // client -> server
  kAccept = 4,     // server -> client: the server's proof
  kRefuse = 5,     // server -> client: reason of rejection
  kWelcome = 6,    // 0 -> rank: all ranks have arrived; addresses in the tree
  // Tree (node.h).
  kGather = 7,    // up: contributions to an exchange
  kAll = 8,       // down: the root's result
  kAsk = 9,       // down: the exchange is slow; which ranks are missing?
  kMissing = 10,  // up: these
  kFail = 11,     // both ways: the job has failed; names rank and cause
  kBye = 12,      // to tree peers: this rank is leaving
  kDone = 13,     // up: all below have left; down: all have left
  // Tree, if a rank makes no progress (inquiry.h).
  kCall = 14,       // up: request an inquiry
  kQuestion = 15,   // down: status query
  kTestimony = 16,  // up: status reply
  kReport = 17,     // down: the report
  // Tree (node.h).
  kGone = 18,     // both ways: a rank's connection has ended
  kLocate = 19,   // towards a rank: request for its address
  kLocated = 20,  // back to the requester: the address
  // During the rendezvous.
  kNotice = 21,  // 0 -> rank: text about a rejected rank
  // Connections that trees share (multiplexer.h).
  kMeet = 22,     // both ways: names of the process and the connection
  kMove = 23,     // continue on an older connection?
  kMoved = 24,    // both ways: the last frame here
  kStay = 25,     // that connection no longer exists
  kChannel = 26,  // a frame of another tree than the connection's own
  kEnd = 27,      // a channel is closed
  kSettled = 28,  // a channel's last frame on its old connection has arrived
  // Connections that outlive their sockets (session.h, redial.h).
  kReceived = 29,  // both ways: number of frames that have arrived
  kResume = 30,    // both ways, first on a new socket: continue after this frame
};
inline constexpr FrameKind kLastFrameKind = FrameKind::kResume;

struct Frame {
  FrameKind kind = FrameKind::kHello;
  std::string payload;
};

std::string EncodeFrame(FrameKind kind, absl::string_view payload);

// Splits a stream of bytes into frames.
class FrameReader {
 public:
  // Rejects frames with more than `limit` bytes of payload before reading them.
  explicit FrameReader(size_t limit) : limit_(limit) {}

  // Returns the buffer for arriving bytes; it starts with those that Next has not returned.
  std::string* buffer() {
    buffer_.erase(0, begin_);
    begin_ = 0;
    return &buffer_;
  }

  // Returns the next complete frame; nullopt if more bytes are needed; InvalidArgument as soon as
  // the bytes cannot be of this protocol.
  absl::StatusOr<std::optional<Frame>> Next();

  void set_limit(size_t limit) { limit_ = limit; }

 private:
  size_t limit_;
  std::string buffer_;
  size_t begin_ = 0;  // in buffer_: of what Next has not returned
};

}  // namespace railhead::bootstrap

#endif  // RAILHEAD_RUNTIME_BOOTSTRAP_FRAME_H_
