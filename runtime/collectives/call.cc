// SPDX-License-Identifier: Apache-2.0
#include "runtime/collectives/call.h"

#include "absl/strings/str_cat.h"

namespace railhead::collectives {
namespace {

// The word: collective, type, operator, root, count, from the highest bits down.
constexpr unsigned kCountBits = 40;
constexpr unsigned kRootBits = 12;
constexpr unsigned kSmallBits = 4;
constexpr unsigned kRootAt = kCountBits;
constexpr unsigned kOpAt = kRootAt + kRootBits;
constexpr unsigned kTypeAt = kOpAt + kSmallBits;
constexpr unsigned kCollectiveAt = kTypeAt + kSmallBits;
static_assert(kCollectiveAt + kSmallBits == 64);
static_assert(kCollectiveNames.size() <= 1U << kSmallBits);
static_assert(rhUint16 < 1U << kSmallBits && rhBxor < 1U << kSmallBits);

uint64_t Low(uint64_t value, unsigned bits) { return value & ((uint64_t{1} << bits) - 1); }

}  // namespace

Call::Call(const Arguments& arguments)
    : word_(static_cast<uint64_t>(arguments.collective) << kCollectiveAt |
            Low(static_cast<uint64_t>(arguments.type), kSmallBits) << kTypeAt |
            Low(static_cast<uint64_t>(arguments.op), kSmallBits) << kOpAt |
            Low(static_cast<uint64_t>(arguments.root), kRootBits) << kRootAt |
            Low(arguments.count, kCountBits)) {}

std::string Call::ToString() const {
  const uint64_t kind = Low(word_ >> kCollectiveAt, kSmallBits);
  if (kind >= kCollectiveNames.size()) return "something unknown";
  const auto collective = static_cast<Collective>(kind);
  std::string text = Name(collective);
  if (collective == Collective::kBarrier || collective == Collective::kSendReceive) return text;
  absl::StrAppend(&text, " of ", Low(word_, kCountBits));
  if (Reduces(collective)) {
    absl::StrAppend(&text, " values of type ", Low(word_ >> kTypeAt, kSmallBits), " with op ",
                    Low(word_ >> kOpAt, kSmallBits));
  } else {
    text += " bytes";
  }
  if (HasRoot(collective)) absl::StrAppend(&text, ", root ", Low(word_ >> kRootAt, kRootBits));
  return text;
}

std::string Contradiction(const std::string& peer, Call theirs, Call ours) {
  return absl::StrCat(peer, " calls ", theirs.ToString(), ", and this rank ", ours.ToString(),
                      "; all ranks must call the same, in the same order");
}

}  // namespace railhead::collectives
