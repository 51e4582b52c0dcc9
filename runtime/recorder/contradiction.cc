// SPDX-License-Identifier: Apache-2.0
#include "runtime/recorder/contradiction.h"

#include <cstdint>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/collectives/call.h"

namespace railhead::recorder {

absl::Status Contradiction(const std::vector<Seen>& ranks) {
  struct Said {
    const Seen* one;
    collectives::Call call;
    const Seen* other = nullptr;  // that has called something else
    collectives::Call of_other;
  };
  std::map<uint64_t, Said> by_number;
  for (const Seen& seen : ranks) {
    const Recent& recent = seen.position.recent;
    for (size_t i = 0; i < recent.calls.size(); ++i) {
      const auto [said, first] =
          by_number.try_emplace(recent.newest - i, Said{&seen, recent.calls[i], nullptr, {}});
      if (first || said->second.call == recent.calls[i]) continue;
      said->second.other = &seen;
      said->second.of_other = recent.calls[i];
    }
  }
  for (const auto& [number, said] : by_number) {
    if (said.other == nullptr) continue;
    return absl::InternalError(absl::StrCat(
        "collective number ", number, ": ",
        collectives::Contradiction(said.one->name, said.call, said.other->name, said.of_other)));
  }
  return absl::OkStatus();
}

}  // namespace railhead::recorder
