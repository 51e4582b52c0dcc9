// SPDX-License-Identifier: Apache-2.0
#include "kube/events.h"

#include <openssl/sha.h>

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "base/printable_text.h"
#include "kube/json.h"

namespace railhead::kube {
namespace {

constexpr size_t kMaxMessage = 1024;
// Names of objects have at most 253 bytes; ours adds a dot and 16 digits.
constexpr size_t kMaxTargetName = 200;
// Maximum number of different events that are counted at a time.
constexpr size_t kMaxCounts = 1000;

// Returns equal names for equal events, in all processes.
std::string NameOf(const Event& event) {
  const std::string content = absl::StrJoin(
      {event.api, event.kind, event.space, event.name, event.uid,
       std::string(event.warning ? "w" : "n"), event.reason, event.part.value_or(event.message)},
      absl::string_view("\0", 1));
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(content.data()), content.size(), digest);
  return absl::StrCat(
      event.name.substr(0, kMaxTargetName), ".",
      absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(digest), 8)));
}

std::string Stamp(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", time, absl::UTCTimeZone());
}

}  // namespace

EventRecorder::EventRecorder(Api* api, std::string component, std::string host,
                             std::function<absl::Time()> clock, EventLimits limits,
                             std::function<absl::Time()> monotonic)
    : api_(api),
      component_(std::move(component)),
      host_(std::move(host)),
      clock_(std::move(clock)),
      monotonic_(std::move(monotonic)),
      limits_(limits),
      tokens_(limits.burst),
      filled_at_(monotonic_()) {}

absl::Duration EventRecorder::UntilAllowed() {
  const absl::Time now = monotonic_();
  const double more = absl::FDivDuration(now - filled_at_, limits_.refill);
  tokens_ = std::min(limits_.burst, tokens_ + std::max(0.0, more));
  filled_at_ = now;
  return std::max(absl::ZeroDuration(), (1 - tokens_) * limits_.refill);
}

absl::Status EventRecorder::Record(const Event& event) {
  const absl::Time now = event.at.value_or(clock_());
  if (UntilAllowed() > absl::ZeroDuration()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("too many events; dropped: ", event.reason, ": ", event.message));
  }
  const std::string space = event.space.empty() ? "default" : event.space;
  const std::string name = NameOf(event);
  if (counts_.size() >= kMaxCounts) counts_.clear();
  const std::string key = absl::StrCat(space, "/", name);
  const auto said = counts_.find(key);
  const int count = said == counts_.end() ? 0 : said->second;
  if (count > 0 && !event.part.has_value()) {
    absl::Status again = Patch(*api_, {"v1", "events", space, name}, PatchType::kMerge,
                               {{"count", count + 1}, {"lastTimestamp", Stamp(now)}})
                             .status();
    if (again.ok()) {
      counts_[key] = count + 1;
      tokens_ -= 1;
    }
    // Events live for an hour.
    if (!absl::IsNotFound(again)) return again;
  }
  const Json object = {
      {"apiVersion", "v1"},
      {"kind", "Event"},
      {"metadata", {{"name", name}, {"namespace", space}}},
      {"involvedObject",
       {{"apiVersion", event.api},
        {"kind", event.kind},
        {"namespace", event.space},
        {"name", event.name},
        {"uid", event.uid}}},
      {"type", event.warning ? "Warning" : "Normal"},
      {"reason", event.reason},
      {"message", PrintableText(event.message, kMaxMessage)},
      {"source", {{"component", component_}, {"host", host_}}},
      {"reportingComponent", component_},
      {"reportingInstance", host_},
      {"firstTimestamp", Stamp(now)},
      {"lastTimestamp", Stamp(now)},
      {"count", 1},
  };
  absl::Status made = Create(*api_, {"v1", "events", space, ""}, object).status();
  if (!made.ok() && !absl::IsAlreadyExists(made)) return made;
  counts_[key] = 1;
  tokens_ -= 1;
  if (made.ok() || event.part.has_value()) return absl::OkStatus();
  // An earlier process created it; without an update it would expire an hour after that.
  absl::StatusOr<Json> told = Patch(*api_, {"v1", "events", space, name}, PatchType::kMerge,
                                    {{"lastTimestamp", Stamp(now)}});
  if (!told.ok()) return absl::IsNotFound(told.status()) ? absl::OkStatus() : told.status();
  const Json* count_of_all = Find(*told, "count");
  if (count_of_all != nullptr && count_of_all->is_number_integer()) {
    counts_[key] = count_of_all->get<int>();
  }
  return absl::OkStatus();
}

}  // namespace railhead::kube
