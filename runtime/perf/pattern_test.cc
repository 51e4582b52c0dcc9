// SPDX-License-Identifier: Apache-2.0
//
// The known answers against arithmetic and movements written down a second time, and against what
// may go wrong with them.
#include "runtime/perf/pattern.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/perf/collectives.h"
#include "runtime/perf/numbers.h"
#include "runtime/perf/types.h"
#include "runtime/testing/arithmetic.h"

namespace railhead::perf {
namespace {

using ::testing::HasSubstr;

using Elements = std::vector<uint64_t>;  // the bits of each

Elements Read(const Type& type, const std::vector<std::byte>& bytes) {
  Elements elements(bytes.size() / type.bytes);
  for (size_t i = 0; i < elements.size(); ++i) {
    std::memcpy(&elements[i], bytes.data() + i * type.bytes, type.bytes);
  }
  return elements;
}

std::vector<std::byte> Write(const Type& type, const Elements& elements) {
  std::vector<std::byte> bytes(elements.size() * type.bytes);
  for (size_t i = 0; i < elements.size(); ++i) {
    std::memcpy(bytes.data() + i * type.bytes, &elements[i], type.bytes);
  }
  return bytes;
}

Elements Filled(const Type& type, const Pattern& pattern, uint64_t round, size_t count) {
  std::vector<std::byte> bytes(count * type.bytes);
  pattern.Fill(round, count, bytes.data());
  return Read(type, bytes);
}

// ---- Types ----

TEST(TypesTest, WholeNumbersAreExactInEveryType) {
  for (const Type& type : Types()) {
    const int64_t step = std::max<int64_t>(1, type.exact() / 5000);
    for (int64_t number = -type.exact(); number <= type.exact(); number += step) {
      const uint64_t bits = Encode(type, number);
      if (type.value == rhFloat64) {
        EXPECT_EQ(bits, std::bit_cast<uint64_t>(static_cast<double>(number)));
      } else if (type.value == rhFloat32) {
        EXPECT_EQ(bits, std::bit_cast<uint32_t>(static_cast<float>(number)));
      } else if (!type.is_integer()) {
        EXPECT_EQ(testing::Decode(testing::FormatOf(type.value), bits), number) << type.name;
      } else {
        EXPECT_EQ(static_cast<int64_t>(bits), number) << type.name;
      }
    }
  }
}

TEST(TypesTest, KindsLeaveOutBitsOfFloats) {
  EXPECT_EQ(Kinds(true, "float", "sum")->size(), 1U);
  EXPECT_EQ(Kinds(false, "all", "sum")->size(), 14U);
  EXPECT_EQ(Kinds(true, "half", "all")->size(), 5U);
  EXPECT_EQ(Kinds(true, "all", "all")->size(), 8U * 8 + 6 * 5);
  EXPECT_EQ(Kinds(true, "all", "bor")->size(), 8U);
  EXPECT_THAT(std::string(Kinds(true, "half", "bor").status().message()),
              HasSubstr("half is a float"));
  EXPECT_FALSE(Kinds(true, "fp32", "sum").ok());
  EXPECT_FALSE(Kinds(true, "float", "mean").ok());
}

// ---- Numbers ----

// The bits of the reduction over `inputs`, at once, or one after the other from the last to the
// first, with a result in the type after each.
uint64_t Reduced(const Type& type, const Operator& op, const Elements& inputs, int divisor,
                 bool at_once) {
  if (at_once) return testing::ReduceElement({type.value, op.value, divisor, {}}, inputs);
  const rhRedOp_t step = op.value == rhAvg ? rhSum : op.value;
  uint64_t result = inputs.back();
  for (size_t i = inputs.size() - 1; i-- > 0;) {
    const rhRedOp_t use = i == 0 ? op.value : step;
    result =
        testing::ReduceElement({type.value, use, i == 0 ? divisor : 1, {}}, {result, inputs[i]});
  }
  return result;
}

class NumbersTest : public ::testing::TestWithParam<int> {};

TEST_P(NumbersTest, TheOutcomeIsExactInEveryOrderAndDefectsShow) {
  const int ranks = GetParam();
  constexpr size_t kCount = 600;
  constexpr uint64_t kRound = 5;
  const std::vector<Kind> kinds = *Kinds(true, kAll, kAll);
  for (const Kind& kind : kinds) {
    const Type& type = *kind.type;
    const Operator& op = *kind.op;
    if (!IsKnown(type, op, ranks).ok()) continue;
    SCOPED_TRACE(absl::StrCat(type.name, " ", op.name));
    std::vector<Elements> inputs(kCount);
    for (int rank = 0; rank < ranks; ++rank) {
      const Elements mine = Filled(type, Pattern(type, &op, ranks, rank), kRound, kCount);
      for (size_t i = 0; i < kCount; ++i) inputs[i].push_back(mine[i]);
    }
    Elements at_once;
    Elements stepwise;
    Elements missing;
    for (Elements& each : inputs) {
      at_once.push_back(Reduced(type, op, each, ranks, true));
      stepwise.push_back(Reduced(type, op, each, ranks, false));
      each.erase(each.begin());
      if (ranks > 1) missing.push_back(Reduced(type, op, each, ranks, true));
    }
    const Pattern pattern(type, &op, ranks, 0);
    const auto wrong = [&](uint64_t round, size_t shift, const Elements& elements) {
      return pattern.CountWrong(round, {{kAllRanks, shift, 0, elements.size()}},
                                Write(type, elements).data());
    };
    EXPECT_EQ(wrong(kRound, 0, at_once), 0U);
    EXPECT_EQ(wrong(kRound, 0, stepwise), 0U);
    EXPECT_GT(wrong(kRound + 1, 0, at_once), kCount / 3) << "a stale result";
    EXPECT_GT(wrong(kRound, 64, at_once), kCount / 3) << "a shifted block";
    EXPECT_GT(wrong(kRound, 1, at_once), kCount / 3) << "a shifted value";
    if (ranks > 1) {
      EXPECT_GT(wrong(kRound, 0, missing), 0U) << "a missing rank";
    }
    if (ranks > 1 && op.value == rhSum && ranks <= type.exact()) {
      EXPECT_EQ(wrong(kRound, 0, missing), kCount) << "a missing rank";
    }
    Elements flipped = at_once;
    flipped[123] ^= uint64_t{1} << (8 * type.bytes - 1);
    EXPECT_EQ(wrong(kRound, 0, flipped), 1U);
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, NumbersTest, ::testing::Values(1, 2, 3, 8, 21));

TEST(LimitsTest, AreSaid) {
  const std::vector<Kind> kinds = *Kinds(true, kAll, kAll);
  for (const Kind& kind : kinds) {
    const bool averages = kind.op->value == rhAvg;
    EXPECT_TRUE(IsKnown(*kind.type, *kind.op, 8).ok());
    EXPECT_EQ(IsKnown(*kind.type, *kind.op, 65536).ok(), !averages || kind.type->bytes > 2);
    if (averages && kind.type->value == rhFloat8e5m2) {
      EXPECT_EQ(IsKnown(*kind.type, *kind.op, 9).message(),
                "--check supports avg of f8e5m2 for up to 8 ranks, not 9");
    }
  }
}

// ---- Movements ----

TEST(PartsTest, UnevenPartsDifferAndFit) {
  for (const Collective& collective : Collectives()) {
    if (!collective.movement.uneven) continue;
    const bool both = collective.movement.send == collective.movement.receive;
    for (int ranks = 1; ranks <= 5; ++ranks) {
      for (size_t count = 0; count <= 5; ++count) {
        for (int owner = 0; owner < ranks; ++owner) {
          const Parts parts = PartsOf(collective.movement, ranks, owner, count);
          EXPECT_EQ(parts.total(), count * static_cast<size_t>(ranks));
          const bool alone = both && owner == ranks - 1 && ranks % 2 == 1;
          if (count > 0 && ranks > 1 && !alone) {
            EXPECT_NE(parts.counts[0], parts.counts[1]);
          }
          for (int other = 0; both && other < ranks; ++other) {
            EXPECT_EQ(parts.counts[static_cast<size_t>(other)],
                      PartsOf(collective.movement, ranks, other, count)
                          .counts[static_cast<size_t>(owner)]);
          }
        }
      }
    }
  }
}

// What each rank has after a collective, by its definition in railhead.h. `sends` are full of what
// ranks send, `reduced` is the reduction over them.
Elements Definition(const std::string& name, const Movement& movement,
                    const std::vector<Elements>& sends, const Elements& reduced, int rank, int root,
                    size_t count) {
  const auto ranks = static_cast<int>(sends.size());
  const auto me = static_cast<size_t>(rank);
  const auto part = [&](const Elements& from, int owner, size_t index) {
    const Parts parts = PartsOf(movement, ranks, owner, count);
    const auto begin = from.begin() + static_cast<std::ptrdiff_t>(parts.begins[index]);
    return Elements(begin, begin + static_cast<std::ptrdiff_t>(parts.counts[index]));
  };
  const auto append = [](Elements& to, const Elements& more) {
    to.insert(to.end(), more.begin(), more.end());
  };
  if (name == "all_reduce") return reduced;
  if (name == "reduce") return rank == root ? reduced : Elements();
  if (name == "broadcast") return sends[static_cast<size_t>(root)];
  if (name == "sendrecv") return sends[me == 0 ? sends.size() - 1 : me - 1];
  if (name == "reduce_scatter" || name == "reduce_scatterv") return part(reduced, rank, me);
  if (name == "scatter") return part(sends[static_cast<size_t>(root)], root, me);
  Elements all;
  if (name == "gather" && rank != root) return all;
  for (int other = 0; other < ranks; ++other) {
    const Elements& from = sends[static_cast<size_t>(other)];
    append(all, name == "alltoall" || name == "alltoallv" ? part(from, other, me) : from);
  }
  return all;
}

class MovementTest : public ::testing::TestWithParam<const Collective*> {};

TEST_P(MovementTest, WhatIsExpectedIsTheDefinitionAndDefectsShow) {
  const Collective& collective = *GetParam();
  const Movement& movement = collective.movement;
  const Type& type = Types()[4];  // int32
  const Operator* const op = collective.reduces() ? Operators().data() : nullptr;
  constexpr size_t kCount = 90;
  constexpr uint64_t kRound = 3;
  for (int ranks = 1; ranks <= 5; ++ranks) {
    const int root = ranks / 2;
    std::vector<Elements> sends;
    Elements reduced;
    for (int rank = 0; rank < ranks; ++rank) {
      const Parts parts = PartsOf(movement, ranks, rank, kCount);
      const size_t values = Values(movement.send, movement, parts, rank, kCount);
      sends.push_back(Filled(type, Pattern(type, op, ranks, rank), kRound, values));
      reduced.resize(std::max(reduced.size(), values));
      for (size_t i = 0; i < values; ++i) {
        reduced[i] = static_cast<uint32_t>(reduced[i] + sends.back()[i]);
      }
    }
    for (int rank = 0; rank < ranks; ++rank) {
      SCOPED_TRACE(absl::StrCat("rank ", rank, " of ", ranks));
      const Pattern pattern(type, op, ranks, rank);
      const std::vector<Piece> pieces = Received(movement, ranks, rank, root, kCount);
      const auto wrong = [&](uint64_t round, const Elements& elements) {
        return pattern.CountWrong(round, pieces, Write(type, elements).data());
      };
      const Elements right =
          Definition(collective.name, movement, sends, reduced, rank, root, kCount);
      const size_t checked =
          std::accumulate(pieces.begin(), pieces.end(), size_t{0},
                          [](size_t sum, const Piece& piece) { return sum + piece.count; });
      ASSERT_EQ(checked, right.size()) << "every value is checked";
      EXPECT_EQ(wrong(kRound, right), 0U);
      if (right.empty()) continue;
      EXPECT_GT(wrong(kRound - 1, right), checked / 2) << "a stale result";
      EXPECT_EQ(wrong(kRound, Elements(right.size(), 0)), checked) << "nothing came";
      Elements rotated = right;
      std::rotate(rotated.begin(), rotated.begin() + 1, rotated.end());
      EXPECT_GT(wrong(kRound, rotated), checked / 2) << "shifted";
      Elements flipped = right;
      flipped.back() ^= 1;
      EXPECT_EQ(wrong(kRound, flipped), 1U);
      if (movement.receive != Shape::kPerRank || ranks == 1) continue;
      Elements swapped = right;
      std::rotate(swapped.begin(), swapped.begin() + static_cast<std::ptrdiff_t>(pieces[1].to),
                  swapped.end());
      EXPECT_GT(wrong(kRound, swapped), checked / 2) << "ranks' parts in another order";
    }
  }
}

std::vector<const Collective*> WithData() {
  std::vector<const Collective*> all;
  for (const Collective& collective : Collectives()) {
    if (collective.has_data()) all.push_back(&collective);
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Collectives, MovementTest, ::testing::ValuesIn(WithData()),
                         [](const auto& of) { return std::string(of.param->name); });

}  // namespace
}  // namespace railhead::perf
