// SPDX-License-Identifier: Apache-2.0
//
// The body of a watch: one JSON object a line, `{"type": ..., "object": ...}` (Kubernetes API
// concepts, "Efficient detection of changes"). Pure: bytes in, events out.
#ifndef RAILHEAD_KUBE_WATCH_DECODER_H_
#define RAILHEAD_KUBE_WATCH_DECODER_H_

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
  kDeleted,   // the object is the last state before
  kBookmark,  // nothing happened up to resource_version; the object says nothing else
};

struct WatchEvent {
  WatchEventType type;
  std::string resource_version;  // to go on from after this event; never empty
  Json object;
};

class WatchDecoder {
 public:
  using OnEvent = std::function<absl::Status(WatchEvent)>;

  explicit WatchDecoder(size_t max_line_bytes) : max_line_bytes_(max_line_bytes) {}

  // Hands on every event that `bytes` complete, in order. Ends at the first error, after which the
  // decoder is of no more use: what `on_event` returned; the server's own, by an ERROR event (with
  // the code that an answer of that HTTP status has: OutOfRange for 410); DataLoss for what is no
  // event, and for a line that is too long.
  absl::Status Feed(absl::string_view bytes, const OnEvent& on_event);

 private:
  const size_t max_line_bytes_;
  std::string part_;  // of a line whose end has not come yet
};

// One line. Errors as of Feed.
absl::StatusOr<WatchEvent> DecodeWatchLine(absl::string_view line);

}  // namespace railhead::kube

#endif  // RAILHEAD_KUBE_WATCH_DECODER_H_
