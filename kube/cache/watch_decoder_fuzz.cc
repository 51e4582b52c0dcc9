// SPDX-License-Identifier: Apache-2.0
//
// The first byte is a seed for where a stream is cut into pieces. However it is cut, the same
// events come out and the same error ends it, and every event can be gone on from.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "kube/cache/watch_decoder.h"
#include "kube/json.h"
#include "kube/lease/election.h"

namespace railhead::kube {
namespace {

constexpr size_t kMaxLine = 512;

void Require(bool condition) {
  if (!condition) std::abort();
}

struct Outcome {
  std::vector<std::string> events;
  absl::Status end;
};

// `piece` gives the size of the next piece.
template <typename Piece>
Outcome Decode(absl::string_view text, Piece piece) {
  Outcome outcome;
  WatchDecoder decoder(kMaxLine);
  while (!text.empty() && outcome.end.ok()) {
    const absl::string_view bytes = text.substr(0, piece());
    text.remove_prefix(bytes.size());
    outcome.end = decoder.Feed(bytes, [&outcome](const WatchEvent& event) {
      Require(!event.resource_version.empty());
      Require(event.object.is_object());
      const absl::StatusOr<LeaseView> lease = ReadLease(event.object);
      Require(lease.ok() ? !lease->version.empty() : absl::IsDataLoss(lease.status()));
      outcome.events.push_back(absl::StrCat(static_cast<int>(event.type), event.resource_version,
                                            DumpJson(event.object)));
      return absl::OkStatus();
    });
  }
  return outcome;
}

void Run(absl::string_view data) {
  if (data.empty()) return;
  auto seed = static_cast<unsigned char>(data[0]);
  const absl::string_view text = data.substr(1);
  const Outcome whole = Decode(text, [&text] { return text.size(); });
  const Outcome cut = Decode(text, [&seed] { return size_t{1} + (seed = seed * 5 + 3) % 7; });
  Require(whole.events == cut.events);
  Require(whole.end == cut.end);
}

}  // namespace
}  // namespace railhead::kube

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  railhead::kube::Run(absl::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
