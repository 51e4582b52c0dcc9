// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/verbs/pkey.h"

#include <algorithm>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace railhead::transport::verbs {
namespace {

bool SamePartition(uint16_t a, uint16_t b) { return ((a ^ b) & ~kFullMember) == 0; }

bool MayTalk(uint16_t a, uint16_t b) { return SamePartition(a, b) && ((a | b) & kFullMember) != 0; }

}  // namespace

std::string PkeyText(uint16_t pkey) { return absl::StrCat("0x", absl::Hex(pkey, absl::kZeroPad4)); }

std::string PkeyText(absl::Span<const uint16_t> pkeys) {
  if (pkeys.empty()) return "none";
  return absl::StrJoin(
      pkeys, ", ", [](std::string* out, uint16_t pkey) { absl::StrAppend(out, PkeyText(pkey)); });
}

bool NamesPartition(uint16_t pkey) { return (pkey & ~kFullMember) != 0; }

std::vector<PkeyChoice> UsablePkeys(absl::Span<const uint16_t> table, uint16_t wanted) {
  std::vector<PkeyChoice> usable;
  for (const uint16_t membership : {kFullMember, uint16_t{0}}) {
    for (size_t index = 0; index < table.size(); ++index) {
      const uint16_t pkey = table[index];
      if (!NamesPartition(pkey) || (pkey & kFullMember) != membership) continue;
      if (wanted != 0 && !SamePartition(pkey, wanted)) continue;
      const bool known = std::any_of(
          usable.begin(), usable.end(),
          [pkey](const PkeyChoice& choice) { return SamePartition(choice.pkey, pkey); });
      if (!known && usable.size() < kMostPkeys) {
        usable.push_back({static_cast<uint16_t>(index), pkey});
      }
    }
  }
  return usable;
}

std::vector<uint16_t> WithoutIndices(absl::Span<const PkeyChoice> choices) {
  std::vector<uint16_t> pkeys;
  pkeys.reserve(choices.size());
  for (const PkeyChoice& choice : choices) pkeys.push_back(choice.pkey);
  return pkeys;
}

std::optional<PkeyChoice> CommonPkey(absl::Span<const PkeyChoice> local,
                                     absl::Span<const uint16_t> peer) {
  std::optional<PkeyChoice> best;
  std::tuple<size_t, int> best_rank;  // sum of places, partition
  for (size_t i = 0; i < local.size(); ++i) {
    for (size_t j = 0; j < peer.size(); ++j) {
      if (!MayTalk(local[i].pkey, peer[j])) continue;
      const std::tuple<size_t, int> rank = {i + j, local[i].pkey & ~kFullMember};
      if (best.has_value() && best_rank <= rank) continue;
      best = local[i];
      best_rank = rank;
    }
  }
  return best;
}

}  // namespace railhead::transport::verbs
