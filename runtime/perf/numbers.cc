// SPDX-License-Identifier: Apache-2.0
#include "runtime/perf/numbers.h"

#include <algorithm>
#include <bit>

#include "absl/strings/str_cat.h"
#include "runtime/perf/mix.h"

namespace railhead::perf {
namespace {

// One of the numbers from 0 to limit-1.
int64_t Below(uint64_t random, int64_t limit) {
  return static_cast<int64_t>(random % static_cast<uint64_t>(limit));
}

// Inputs of one rank's number at one place.
struct Place {
  const Type& type;
  int64_t ranks;
  int64_t turn;     // of this rank: 0 to ranks-1, in an order that changes from place to place
  uint64_t shared;  // random, the same on all ranks
  uint64_t own;     // random, and differs between ranks
  int64_t sign() const { return own >> 63 == 0 ? 1 : -1; }
};

// Not zero, and all magnitudes together at most exact(); where there are more ranks than that,
// those whose turn comes later give nothing.
int64_t Addend(const Place& at) {
  const int64_t exact = at.type.exact();
  if (at.turn >= exact) return 0;
  return at.sign() * (1 + Below(at.own, std::max(exact / at.ranks, int64_t{1})));
}

// A number that all ranks share, one more on one rank and one less on another.
int64_t Averaged(const Place& at) {
  const int64_t shared = 1 + Below(at.shared, std::max(at.type.exact() / at.ranks, int64_t{1}));
  const int64_t own = shared + (at.turn == 0 ? 1 : 0) - (at.turn == 1 % at.ranks ? 1 : 0);
  return at.type.is_signed && at.shared >> 63 != 0 ? -own : own;
}

// 1 or 2, and so few twos that the product is at most exact(); with either sign.
int64_t Factor(const Place& at) {
  const auto twos = static_cast<int>(std::bit_width(static_cast<uint64_t>(at.type.exact()))) - 1;
  return at.sign() * (at.turn < twos ? 1 + Below(at.own, 2) : 1);
}

// From the upper half of what the type has on one rank, from the lower half on all others.
int64_t Candidate(const Place& at) {
  const int64_t high = at.type.exact();
  const int64_t low = at.type.is_signed ? -high : 0;
  const int64_t middle = (low + high) / 2;
  return at.turn == 0 ? middle + 1 + Below(at.own, high - middle)
                      : low + Below(at.own, middle - low + 1);
}

// This rank's part of random bits that all ranks share: each bit has one rank.
uint64_t OwnBits(const Place& at) {
  uint64_t mask = 0;
  for (int64_t bit = at.turn; bit < 64; bit += at.ranks) mask |= uint64_t{1} << bit;
  return at.shared & mask;
}

}  // namespace

absl::Status IsKnown(const Type& type, const Operator& op, int ranks) {
  // Two averages at least are possible, or a shifted block would not show.
  const int64_t most = type.is_signed ? type.exact() : type.exact() / 2;
  if (op.value != rhAvg || ranks <= most) return absl::OkStatus();
  return absl::OutOfRangeError(absl::StrCat("--check supports avg of ", type.name, " for up to ",
                                            most, " ranks, not ", ranks));
}

int64_t Contribution(const Type& type, const Operator& op, int ranks, int rank, size_t place) {
  const uint64_t shared = Mix(place + 1);
  const Place at = {type, ranks, (rank + Below(shared >> 32, ranks)) % ranks, shared,
                    Mix(shared + static_cast<uint64_t>(rank))};
  switch (op.value) {
    case rhSum:
      return Addend(at);
    case rhProd:
      return Factor(at);
    case rhMax:
      return Candidate(at);
    case rhMin:
      return (type.is_signed ? 0 : type.exact()) - Candidate(at);
    case rhAvg:
      return Averaged(at);
    case rhBand:
      return static_cast<int64_t>(~OwnBits(at));
    case rhBor:
      return static_cast<int64_t>(OwnBits(at));
    case rhBxor:
      return static_cast<int64_t>(at.own);
  }
  return 0;
}

int64_t Outcome(const Type& type, const Operator& op, int ranks, size_t place) {
  int64_t outcome = Contribution(type, op, ranks, 0, place);
  for (int rank = 1; rank < ranks; ++rank) {
    const int64_t next = Contribution(type, op, ranks, rank, place);
    switch (op.value) {
      case rhSum:
      case rhAvg:
        outcome += next;
        break;
      case rhProd:
        outcome *= next;
        break;
      case rhMax:
        outcome = std::max(outcome, next);
        break;
      case rhMin:
        outcome = std::min(outcome, next);
        break;
      case rhBand:
        outcome &= next;
        break;
      case rhBor:
        outcome |= next;
        break;
      case rhBxor:
        outcome ^= next;
        break;
    }
  }
  return op.value == rhAvg ? outcome / ranks : outcome;
}

}  // namespace railhead::perf
