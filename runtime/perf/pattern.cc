// SPDX-License-Identifier: Apache-2.0
#include "runtime/perf/pattern.h"

#include <cstring>

#include "runtime/perf/mix.h"
#include "runtime/perf/numbers.h"

namespace railhead::perf {
namespace {

// Period of the numbers. It is prime, so no two blocks of usual sizes are alike; and the step by
// which each round begins later in it.
constexpr size_t kPeriod = 4093;
constexpr uint64_t kStep = 1201;

// The bits that a rank sends at an index when values are only moved.
class MovedBits {
 public:
  MovedBits(int rank, uint64_t round) : seed_(Mix(Mix(round) + static_cast<uint64_t>(rank))) {}
  uint64_t operator()(size_t index) const { return Mix(seed_ + index); }

 private:
  uint64_t seed_;
};

// The bits at an index of a round, of one period.
class PeriodBits {
 public:
  PeriodBits(const std::vector<uint64_t>& period, uint64_t round)
      : period_(period), begin_(round % kPeriod * kStep) {}
  uint64_t operator()(size_t index) const { return period_[(begin_ + index) % kPeriod]; }

 private:
  const std::vector<uint64_t>& period_;
  uint64_t begin_;
};

template <class Word, class Bits>
void Write(const Bits& bits, size_t count, std::byte* to) {
  for (size_t i = 0; i < count; ++i) {
    const auto word = static_cast<Word>(bits(i));
    std::memcpy(to + i * sizeof word, &word, sizeof word);
  }
}

template <class Word, class Bits>
uint64_t CountOthers(const Bits& bits, const Piece& piece, const std::byte* received) {
  uint64_t others = 0;
  for (size_t i = 0; i < piece.count; ++i) {
    Word word = 0;
    std::memcpy(&word, received + (piece.to + i) * sizeof word, sizeof word);
    others += word == static_cast<Word>(bits(piece.from + i)) ? 0 : 1;
  }
  return others;
}

// Calls `body` with a word of `bytes` bytes.
template <class Body>
auto WithWord(size_t bytes, const Body& body) {
  switch (bytes) {
    case 1:
      return body(uint8_t{});
    case 2:
      return body(uint16_t{});
    case 4:
      return body(uint32_t{});
    default:
      return body(uint64_t{});
  }
}

}  // namespace

Pattern::Pattern(const Type& type, const Operator* op, int ranks, int rank)
    : type_(type), reduces_(op != nullptr), rank_(rank) {
  if (op == nullptr) return;
  for (size_t place = 0; place < kPeriod; ++place) {
    mine_.push_back(Encode(type, Contribution(type, *op, ranks, rank, place)));
    outcomes_.push_back(Encode(type, Outcome(type, *op, ranks, place)));
  }
}

void Pattern::Fill(uint64_t round, size_t count, std::byte* send) const {
  WithWord(type_.bytes, [&](auto word) {
    using Word = decltype(word);
    if (reduces_) {
      Write<Word>(PeriodBits(mine_, round), count, send);
    } else {
      Write<Word>(MovedBits(rank_, round), count, send);
    }
  });
}

uint64_t Pattern::CountWrong(uint64_t round, const std::vector<Piece>& pieces,
                             const std::byte* received) const {
  uint64_t wrong = 0;
  for (const Piece& piece : pieces) {
    wrong += WithWord(type_.bytes, [&](auto word) {
      using Word = decltype(word);
      return piece.source == kAllRanks
                 ? CountOthers<Word>(PeriodBits(outcomes_, round), piece, received)
                 : CountOthers<Word>(MovedBits(piece.source, round), piece, received);
    });
  }
  return wrong;
}

}  // namespace railhead::perf
