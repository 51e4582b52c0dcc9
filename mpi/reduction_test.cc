// SPDX-License-Identifier: Apache-2.0
#include "mpi/reduction.h"

#include <gtest/gtest.h>

#include <complex>
#include <cstdint>
#include <vector>

namespace railhead::mpi {
namespace {

constexpr Operator Predefined(Operation operation) { return {operation, nullptr}; }

TEST(NativeReductionTest, NumbersHaveTheLibrarysOperators) {
  const auto sum = NativeReduction(Number<float>(), Predefined(Operation::kSum));
  ASSERT_TRUE(sum.has_value());
  EXPECT_EQ(sum->type, rhFloat32);
  EXPECT_EQ(sum->op, rhSum);
  EXPECT_EQ(sum->parts, 1U);
  const auto bits = NativeReduction(Number<uint16_t>(), Predefined(Operation::kBitwiseXor));
  ASSERT_TRUE(bits.has_value());
  EXPECT_EQ(bits->type, rhUint16);
  EXPECT_EQ(bits->op, rhBxor);
}

TEST(NativeReductionTest, FloatsHaveNoBits) {
  for (const Operation operation :
       {Operation::kBitwiseAnd, Operation::kBitwiseOr, Operation::kBitwiseXor}) {
    EXPECT_FALSE(NativeReduction(Number<double>(), Predefined(operation)).has_value());
    Datatype type = Number<double>();
    EXPECT_EQ(FoldedReduction(&type, Predefined(operation)), nullptr);
  }
}

TEST(NativeReductionTest, ASumOfComplexNumbersIsOneOfTheirParts) {
  const auto sum = NativeReduction(Complex<double>(), Predefined(Operation::kSum));
  ASSERT_TRUE(sum.has_value());
  EXPECT_EQ(sum->type, rhFloat64);
  EXPECT_EQ(sum->parts, 2U);
  EXPECT_FALSE(NativeReduction(Complex<double>(), Predefined(Operation::kMax)).has_value());
  EXPECT_FALSE(NativeReduction(Complex<double>(), Predefined(Operation::kProduct)).has_value());
}

TEST(NativeReductionTest, BoolsAreTrueOrFalse) {
  const auto any = NativeReduction(Logical(), Predefined(Operation::kSum));
  ASSERT_TRUE(any.has_value());
  EXPECT_EQ(any->op, rhMax);
  EXPECT_EQ(NativeReduction(Logical(), Predefined(Operation::kLogicalAnd))->op, rhMin);
  EXPECT_EQ(NativeReduction(Logical(), Predefined(Operation::kLogicalXor))->op, rhBxor);
}

TEST(NativeReductionTest, BytesHaveNone) {
  EXPECT_FALSE(NativeReduction(Plain(2), Predefined(Operation::kSum)).has_value());
  Datatype bytes = Plain(8);
  EXPECT_EQ(FoldedReduction(&bytes, Predefined(Operation::kMaxAt)), nullptr);
}

TEST(FoldedReductionTest, ProductOfComplexNumbers) {
  Datatype type = Complex<float>();
  const Fold fold = FoldedReduction(&type, Predefined(Operation::kProduct));
  ASSERT_NE(fold, nullptr);
  const std::vector<std::complex<float>> in = {{1, 2}, {0, 1}};
  std::vector<std::complex<float>> inout = {{3, 4}, {0, 1}};
  fold(in.data(), inout.data(), 2);
  EXPECT_EQ(inout, (std::vector<std::complex<float>>{{-5, 10}, {-1, 0}}));
}

TEST(FoldedReductionTest, LogicalOperatorsOnIntegersGiveOneOrZero) {
  Datatype type = Number<int64_t>();
  const std::vector<int64_t> in = {0, 7, 0, -1};
  const auto folded = [&](Operation operation) {
    std::vector<int64_t> inout = {0, 0, int64_t{1} << 40, 5};
    FoldedReduction(&type, Predefined(operation))(in.data(), inout.data(), inout.size());
    return inout;
  };
  EXPECT_EQ(folded(Operation::kLogicalAnd), (std::vector<int64_t>{0, 0, 0, 1}));
  EXPECT_EQ(folded(Operation::kLogicalOr), (std::vector<int64_t>{0, 1, 1, 1}));
  EXPECT_EQ(folded(Operation::kLogicalXor), (std::vector<int64_t>{0, 1, 1, 0}));
  Datatype real = Number<float>();
  EXPECT_EQ(FoldedReduction(&real, Predefined(Operation::kLogicalAnd)), nullptr);
}

TEST(FoldedReductionTest, OfEqualValuesTheLowerIndexCounts) {
  using Values = std::vector<ValueAt<int16_t>>;
  Datatype type = Pair<int16_t>();
  const auto folded = [&](Operation operation) {
    const Values in = {{5, 3}, {5, 2}, {-7, 1}};
    Values inout = {{4, 9}, {5, 4}, {6, 8}};
    FoldedReduction(&type, Predefined(operation))(in.data(), inout.data(), inout.size());
    return std::vector<int>{inout[0].value, inout[0].index, inout[1].value,
                            inout[1].index, inout[2].value, inout[2].index};
  };
  EXPECT_EQ(folded(Operation::kMaxAt), (std::vector<int>{5, 3, 5, 2, 6, 8}));
  EXPECT_EQ(folded(Operation::kMinAt), (std::vector<int>{4, 9, 5, 2, -7, 1}));
  EXPECT_EQ(FoldedReduction(&type, Predefined(Operation::kSum)), nullptr);
}

// NOLINTBEGIN(google-runtime-float): it is MPI's type.
TEST(FoldedReductionTest, LongDoubles) {
  Datatype type = Wide(1);
  const long double in = 1.0L / 3;
  long double inout = 2.0L / 3;
  FoldedReduction(&type, Predefined(Operation::kProduct))(&in, &inout, 1);
  EXPECT_EQ(inout, (1.0L / 3) * (2.0L / 3));
  Datatype complex = Wide(2);
  EXPECT_NE(FoldedReduction(&complex, Predefined(Operation::kSum)), nullptr);
  EXPECT_EQ(FoldedReduction(&complex, Predefined(Operation::kMax)), nullptr);
}
// NOLINTEND(google-runtime-float)

TEST(FoldedReductionTest, AProgramsOperatorGetsItsHandleAndOrder) {
  static Datatype type = Plain(2);
  const UserFunction difference = [](void* in, void* inout, int* length, Datatype** handle) {
    ASSERT_EQ(*handle, &type);
    for (int i = 0; i < *length; ++i) {
      auto& to = static_cast<int16_t*>(inout)[i];
      to = static_cast<int16_t>(static_cast<int16_t*>(in)[i] - to);
    }
  };
  const Fold fold = FoldedReduction(&type, {Operation::kProgram, difference});
  const std::vector<int16_t> in = {10, 20, 30};
  std::vector<int16_t> inout = {1, 2, 3};
  fold(in.data(), inout.data(), 3);
  EXPECT_EQ(inout, (std::vector<int16_t>{9, 18, 27}));
}

}  // namespace
}  // namespace railhead::mpi
