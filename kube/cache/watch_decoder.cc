// SPDX-License-Identifier: Apache-2.0
#include "kube/cache/watch_decoder.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kube/client.h"

namespace railhead::kube {
namespace {

// A buffer that grew for one large object is given back after it.
constexpr size_t kKeptCapacity = 64U << 10U;
constexpr int kInternalServerError = 500;

std::optional<WatchEventType> TypeOf(absl::string_view name) {
  if (name == "ADDED") return WatchEventType::kAdded;
  if (name == "MODIFIED") return WatchEventType::kModified;
  if (name == "DELETED") return WatchEventType::kDeleted;
  if (name == "BOOKMARK") return WatchEventType::kBookmark;
  return std::nullopt;
}

// The object of an ERROR event is a Status.
absl::Status ServersError(const Json& status) {
  const Json* code = Find(status, "code");
  const bool is_status = code != nullptr && code->is_number_integer() &&
                         code->get<int64_t>() >= 400 && code->get<int64_t>() <= 599;
  return StatusFromAnswer("watch",
                          is_status ? static_cast<int>(code->get<int64_t>()) : kInternalServerError,
                          DumpJson(status));
}

}  // namespace

absl::StatusOr<WatchEvent> DecodeWatchLine(absl::string_view line) {
  absl::StatusOr<Json> read = ParseJson(line);
  if (!read.ok()) {
    return absl::DataLossError(absl::StrCat("watch: a line is ", read.status().message()));
  }
  const std::string type = StringAt(*read, {"type"});
  const Json* object = Find(*read, "object");
  if (object == nullptr || !object->is_object()) {
    return absl::DataLossError("watch: an event has no object");
  }
  if (type == "ERROR") return ServersError(*object);
  const std::optional<WatchEventType> known = TypeOf(type);
  if (!known) {
    return absl::DataLossError(
        absl::StrCat("watch: an event of unknown type \"", type.substr(0, 64), "\""));
  }
  WatchEvent event{*known, StringAt(*object, {"metadata", "resourceVersion"}), {}};
  if (event.resource_version.empty()) {
    return absl::DataLossError(absl::StrCat("watch: ", type, " has no metadata.resourceVersion"));
  }
  event.object = std::move((*read)["object"]);
  return event;
}

absl::Status WatchDecoder::Feed(absl::string_view bytes, const OnEvent& on_event) {
  for (;;) {
    const size_t end = bytes.find('\n');
    const absl::string_view piece = bytes.substr(0, end);
    if (piece.size() > max_line_bytes_ - part_.size()) {
      return absl::DataLossError(
          absl::StrCat("watch: an event is longer than ", max_line_bytes_, " bytes"));
    }
    if (end == absl::string_view::npos) {
      part_.append(piece.data(), piece.size());
      return absl::OkStatus();
    }
    bytes.remove_prefix(end + 1);
    absl::string_view line = piece;
    if (!part_.empty()) {
      part_.append(piece.data(), piece.size());
      line = part_;
    }
    if (!line.empty()) {
      absl::StatusOr<WatchEvent> event = DecodeWatchLine(line);
      if (!event.ok()) return event.status();
      if (absl::Status taken = on_event(*std::move(event)); !taken.ok()) return taken;
    }
    part_.clear();
    if (part_.capacity() > kKeptCapacity) part_.shrink_to_fit();
  }
}

}  // namespace railhead::kube
