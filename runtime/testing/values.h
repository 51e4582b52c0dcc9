// SPDX-License-Identifier: Apache-2.0
//
// What ranks pass to a collective, and what must come of it, value by value, by plain arithmetic
// (arithmetic.h).
//
// Values repeat after a while, so that the arithmetic, which is slow, is done once for all sizes.
// The period is prime: whatever lands in a wrong place, by as much as anything is cut into, is
// another value there.
#ifndef RAILHEAD_RUNTIME_TESTING_VALUES_H_
#define RAILHEAD_RUNTIME_TESTING_VALUES_H_

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

#include "runtime/reduce/reduce.h"
#include "runtime/testing/arithmetic.h"

namespace railhead::testing {

inline uint64_t Mix(uint64_t value) {
  value *= 0x9e3779b97f4a7c15U;
  value ^= value >> 29U;
  value *= 0xbf58476d1ce4e5b9U;
  return value ^ value >> 32U;
}

inline bool IsFloat(rhDataType_t type) { return type >= rhFloat16 && type <= rhFloat8e5m2; }

// Which floats ranks pass to what adds or multiplies them. Everything else gets any bits: integers,
// least and greatest values, and what is only moved.
enum class Values {
  kExact,    // no sum or product of any of them needs rounding, in whatever order ranks meet
  kRounded,  // results depend on the order of ranks, and so may differ a little from what is right
  kAny       // any bits, also NaN and infinities, where ranks meet in their order
};

// What is done with each value.
struct Operation {
  rhDataType_t type = rhFloat32;
  rhRedOp_t op = rhSum;
  bool scaled = false;  // each rank's values are multiplied by its own factor before
  Values values = Values::kExact;
  int ranks = 1;

  bool operator<(const Operation& other) const {
    return std::tie(type, op, scaled, values, ranks) <
           std::tie(other.type, other.op, other.scaled, other.values, other.ranks);
  }
  // Whether the result depends on the order of ranks.
  bool depends_on_order() const {
    return IsFloat(type) && values == Values::kRounded && op != rhMin && op != rhMax;
  }
};

class ValueTable {
 public:
  static constexpr size_t kPeriod = 1021;

  // Any thread. It lives as long as the process.
  static const ValueTable& Of(const Operation& operation) {
    static std::mutex mutex;
    static std::map<Operation, std::unique_ptr<ValueTable>> tables;
    const std::lock_guard<std::mutex> lock(mutex);
    std::unique_ptr<ValueTable>& table = tables[operation];
    if (table == nullptr) table.reset(new ValueTable(operation));
    return *table;
  }

  // kPeriod values each.
  const std::byte* input(size_t rank) const { return inputs_[rank].data(); }
  const std::byte* result() const { return result_.data(); }
  // What a rank's values are multiplied by, if scaled: a value's bits.
  uint64_t factor(size_t rank) const { return factors_[rank]; }

  // Whether these bits may be value `index` of the result.
  bool Accepts(uint64_t bits, size_t index) const {
    if (!operation_.depends_on_order()) return bits == Load(result_, index);
    const double value = Decode(FormatOf(operation_.type), bits);
    return least_[index] <= value && value <= most_[index];
  }

 private:
  explicit ValueTable(const Operation& operation)
      : operation_(operation),
        element_(reduce::SizeOf(operation.type)),
        result_(kPeriod * element_) {
    const auto ranks = static_cast<size_t>(operation.ranks);
    inputs_.assign(ranks, std::vector<std::byte>(kPeriod * element_));
    for (size_t rank = 0; rank < ranks; ++rank) factors_.push_back(Factor(rank));
    if (!reduce::CanReduce(operation.type, operation.op)) return;
    for (size_t index = 0; index < kPeriod; ++index) {
      std::vector<uint64_t> values;
      for (size_t rank = 0; rank < ranks; ++rank) {
        const uint64_t bits = Input(rank, index);
        Store(inputs_[rank], index, bits);
        values.push_back(operation.scaled ? Product(bits, factors_[rank]) : bits);
      }
      Store(result_, index,
            ReduceElement({operation.type, operation.op, operation.ranks, {}}, values));
      if (operation.depends_on_order()) Bound(values);
    }
  }

  void Store(std::vector<std::byte>& values, size_t index, uint64_t bits) const {
    std::memcpy(values.data() + index * element_, &bits, element_);  // little endian
  }
  uint64_t Load(const std::vector<std::byte>& values, size_t index) const {
    uint64_t bits = 0;
    std::memcpy(&bits, values.data() + index * element_, element_);
    return bits;
  }

  uint64_t Input(size_t rank, size_t index) const {
    const uint64_t chance = Mix(Mix(index + 1) + rank);
    const uint64_t mask = ~uint64_t{0} >> (64 - 8 * element_);
    if (!IsFloat(operation_.type)) return chance & mask;
    const FloatFormat format = FormatOf(operation_.type);
    const bool ordered = operation_.op == rhMin || operation_.op == rhMax;
    if (ordered || operation_.values == Values::kAny) {
      if (chance % 16 != 0) return Mix(chance) & mask;
      const std::array<uint64_t, 8> edges = {0,
                                             format.sign(),
                                             format.nan(),
                                             format.largest(),
                                             format.sign() | format.largest(),
                                             1,
                                             format.infinity(),
                                             format.sign() | format.infinity()};
      return edges[chance / 16 % edges.size()] & mask;
    }
    const bool negative = chance % 2 != 0;
    double value = 0;
    if (operation_.values == Values::kRounded) {
      // Products of many stay far from the type's limits.
      const int exponent = operation_.op == rhProd ? 0 : static_cast<int>(chance / 2 % 4) - 2;
      const double mantissa = std::ldexp(static_cast<double>(Mix(chance) >> 11U), -53);
      value = std::ldexp(1 + mantissa, exponent);
    } else if (operation_.op == rhProd) {
      value = std::ldexp(1, static_cast<int>(chance / 2 % 3) - 1);
    } else {
      // As many as there are ranks add up to what the mantissa holds.
      const int most = std::max(0, format.mantissa_bits - 2);
      const uint64_t limit = uint64_t{1} << static_cast<unsigned>(std::min(most, 40));
      value = static_cast<double>(chance / 2 % (limit + 1));
      if (operation_.scaled) value /= std::fabs(Decode(format, factors_[rank]));
    }
    return Encode(format, negative && value != 0 ? -value : value);
  }

  uint64_t Factor(size_t rank) const {
    if (!IsFloat(operation_.type)) return 2 * rank + 3;
    const FloatFormat format = FormatOf(operation_.type);
    const double sign = rank % 2 == 0 ? 1 : -1;
    // Powers of two leave mantissas as they are.
    const double size = operation_.values == Values::kExact
                            ? std::ldexp(1, static_cast<int>(rank % 3) - 1)
                            : 0.75 + 0.375 * static_cast<double>(rank);
    return Encode(format, sign * size);
  }

  // Rounded to the type.
  uint64_t Product(uint64_t bits, uint64_t factor) const {
    const reduce::Scalar scalar = {
        IsFloat(operation_.type) ? Decode(FormatOf(operation_.type), factor) : 1, factor};
    return ReduceElement({operation_.type, rhSum, 1, absl::MakeConstSpan(&scalar, 1)}, {bits});
  }

  // What rounding at every rank can make of the next value of the result.
  void Bound(const std::vector<uint64_t>& values) {
    const FloatFormat format = FormatOf(operation_.type);
    const double unit = std::ldexp(1, -format.mantissa_bits - 1);
    const double least = Decode(format, 1);
    const auto roundings = static_cast<double>(operation_.ranks + 1);
    long double result = operation_.op == rhProd ? 1 : 0;
    long double size = result;
    for (const uint64_t bits : values) {
      const double value = Decode(format, bits);
      result = operation_.op == rhProd ? result * value : result + value;
      size = operation_.op == rhProd ? size * std::fabs(value) : size + std::fabs(value);
    }
    if (operation_.op == rhAvg) {
      result /= operation_.ranks;
      size /= operation_.ranks;
    }
    const long double error = size * std::expm1(roundings * std::log1p(unit)) + roundings * least;
    least_.push_back(result - error);
    most_.push_back(result + error);
  }

  const Operation operation_;
  const size_t element_;
  std::vector<std::vector<std::byte>> inputs_;  // by rank
  std::vector<uint64_t> factors_;
  std::vector<std::byte> result_;
  std::vector<long double> least_;
  std::vector<long double> most_;
};

}  // namespace railhead::testing

#endif  // RAILHEAD_RUNTIME_TESTING_VALUES_H_
