// SPDX-License-Identifier: Apache-2.0
//
// Decoder of a watch's body: one JSON object per line, `{"type": ..., "object": ...}` (Kubernetes
// API concepts, "Efficient detection of changes"). Pure: bytes in, events out. Used by Watch.
#ifndef RAILHEAD_KUBE_CACHE_WATCH_DECODER_H_
#define RAILHEAD_KUBE_CACHE_WATCH_DECODER_H_

#include <cstddef>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kube/json.h"

namespace railhead::kube {

enum class WatchEventType {
  kAdded,
  kModified,
  kDeleted,   // the object is its last state
  kBookmark,  // no event up to resource_version; the object has no other content
};

struct WatchEvent {
  WatchEventType type;
  std::string resource_version;  // resume after this event from here; never empty
  Json object;
};

class WatchDecoder {
 public:
  using OnEvent = std::function<absl::Status(WatchEvent)>;

  explicit WatchDecoder(size_t max_line_bytes) : max_line_bytes_(max_line_bytes) {}

  // Passes on every event that `bytes` complete, in order. Stops at the first error, after which
  // the decoder cannot be used: the error of `on_event`; the server's ERROR event (with the code of
  // that HTTP status: OutOfRange for 410); DataLoss for anything that is not an event, and for a
  // line that is too long.
  absl::Status Feed(absl::string_view bytes, const OnEvent& on_event);

 private:
  const size_t max_line_bytes_;
  std::string part_;  // incomplete last line
};

// Decodes one line. Errors as in Feed.
absl::StatusOr<WatchEvent> DecodeWatchLine(absl::string_view line);

}  // namespace railhead::kube

#endif  // RAILHEAD_KUBE_CACHE_WATCH_DECODER_H_
