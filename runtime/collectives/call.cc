// SPDX-License-Identifier: Apache-2.0
#include "runtime/collectives/call.h"

#include <bit>

#include "absl/strings/str_cat.h"

namespace railhead::collectives {
namespace {

// The word, from the highest bits down: collective; digest; type and operator, if it reduces; root,
// if it has one; and the count in the remaining bits. The count is a number, the number of bit
// pairs cut off it, and whether one of them was set.
constexpr unsigned kCollectiveBits = 4;
constexpr unsigned kDigestBits = 20;
constexpr unsigned kTypeBits = 4;
constexpr unsigned kOpBits = 3;
constexpr unsigned kRootBits = 12;
constexpr unsigned kCutBits = 5;
static_assert(kCollectiveNames.size() <= 1U << kCollectiveBits);
static_assert(rhUint16 < 1U << kTypeBits && rhBxor < 1U << kOpBits);

uint64_t Low(uint64_t value, unsigned bits) { return value & ((uint64_t{1} << bits) - 1); }

// Its high bits depend on all bits of both.
uint64_t Mix(uint64_t digest, uint64_t value) {
  constexpr uint64_t kOdd = 0x9e3779b97f4a7c15;
  digest = (digest ^ value) * kOdd;
  return digest ^ digest >> 32U;
}

// The part of a word that is not written, or read, yet.
class Rest {
 public:
  explicit Rest(uint64_t word = 0) : word_(word) {}
  void Put(uint64_t value, unsigned bits) {
    left_ -= bits;
    word_ |= Low(value, bits) << left_;
  }
  uint64_t Get(unsigned bits) {
    left_ -= bits;
    return Low(word_ >> left_, bits);
  }
  unsigned left() const { return left_; }
  uint64_t word() const { return word_; }

 private:
  uint64_t word_;
  unsigned left_ = 64;
};

}  // namespace

Call::Call(const Arguments& arguments) {
  uint64_t digest = Mix(arguments.count, static_cast<uint64_t>(arguments.root));
  digest = Mix(digest, arguments.parts) >> (64 - kDigestBits);
  Rest rest;
  rest.Put(static_cast<uint64_t>(arguments.collective), kCollectiveBits);
  rest.Put(digest + arguments.number, kDigestBits);
  if (Reduces(arguments.collective)) {
    rest.Put(static_cast<uint64_t>(arguments.type), kTypeBits);
    rest.Put(static_cast<uint64_t>(arguments.op), kOpBits);
  }
  if (HasRoot(arguments.collective)) rest.Put(static_cast<uint64_t>(arguments.root), kRootBits);
  const unsigned kept = rest.left() - kCutBits - 1;
  const auto bits = static_cast<unsigned>(std::bit_width(arguments.count));
  const unsigned pairs = bits > kept ? (bits - kept + 1) / 2 : 0;
  rest.Put(pairs, kCutBits);
  rest.Put(Low(arguments.count, 2 * pairs) != 0 ? 1 : 0, 1);
  rest.Put(arguments.count >> 2 * pairs, kept);
  word_ = rest.word();
}

std::string Call::ToString() const {
  Rest rest(word_);
  const uint64_t kind = rest.Get(kCollectiveBits);
  if (kind >= kCollectiveNames.size()) return "something unknown";
  const auto collective = static_cast<Collective>(kind);
  std::string text = Name(collective);
  if (collective == Collective::kBarrier || collective == Collective::kSendReceive) return text;
  rest.Get(kDigestBits);
  std::string what = " bytes";
  if (Reduces(collective)) {
    const uint64_t type = rest.Get(kTypeBits);
    what = absl::StrCat(" values of type ", type, " with op ", rest.Get(kOpBits));
  }
  if (HasRoot(collective)) absl::StrAppend(&what, ", root ", rest.Get(kRootBits));
  const uint64_t cut = 2 * rest.Get(kCutBits);
  absl::StrAppend(&text, rest.Get(1) == 0 ? " of " : " of about ");
  // A word of no call has any bits.
  absl::StrAppend(&text, cut < 64 ? rest.Get(rest.left()) << cut : 0, what);
  return text;
}

uint64_t DigestOf(const Parts& parts) {
  if (parts.equal()) return 0;
  bool equal = true;
  uint64_t digest = parts.ranks();
  for (size_t rank = 0; rank < parts.ranks(); ++rank) {
    equal = equal && parts[rank].size == parts[0].size;
    digest = Mix(digest, parts[rank].size);
  }
  return equal ? 0 : digest;
}

std::string Contradiction(const std::string& one, Call of_one, const std::string& other,
                          Call of_other) {
  const std::string first = of_one.ToString();
  const std::string second = of_other.ToString();
  // The difference is not in what ToString() shows.
  const char* const hidden = first == second
                                 ? " (with other counts, or one call has been made before that the "
                                   "other has not)"
                                 : "";
  return absl::StrCat(one, " calls ", first, ", and ", other, " ", second, hidden,
                      "; all ranks must call the same, in the same order");
}

std::string Contradiction(const std::string& peer, Call theirs, Call ours) {
  return Contradiction(peer, theirs, "this rank", ours);
}

}  // namespace railhead::collectives
