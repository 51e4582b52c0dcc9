// SPDX-License-Identifier: Apache-2.0
//
// The frames that ranks exchange with rank 0 on the rendezvous connection: magic, kind, length,
// payload. A stranger's first bytes are not the magic and are recognised at once.
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
  kHello = 1,    // rank -> 0: who I am
  kRefuse = 2,   // 0 -> rank: why I do not take you
  kWelcome = 3,  // 0 -> rank: everyone is here; their names
  kBlob = 4,     // rank -> 0: my part of an exchange
  kAll = 5,      // 0 -> rank: everybody's parts
  kFail = 6,     // both ways: the job has failed; the text says who and why
  kBye = 7,      // rank -> 0: I am done; 0 -> rank: everybody is done
};

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
