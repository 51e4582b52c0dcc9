// SPDX-License-Identifier: Apache-2.0
#include "runtime/reduce/reduce.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cfenv>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "hwy/targets.h"
#include "runtime/reduce/cpu.h"
#include "runtime/reduce/kernels.h"
#include "runtime/testing/arithmetic.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace railhead::reduce {
namespace {

using Words = std::vector<uint64_t>;  // elements, one a word
using Buffer = std::vector<std::byte>;

constexpr rhDataType_t kTypes[] = {rhInt8,    rhUint8,   rhInt16,      rhUint16,    rhInt32,
                                   rhUint32,  rhInt64,   rhUint64,     rhFloat16,   rhBfloat16,
                                   rhFloat32, rhFloat64, rhFloat8e4m3, rhFloat8e5m2};
constexpr rhDataType_t kSmallFloats[] = {rhFloat16, rhBfloat16, rhFloat8e4m3, rhFloat8e5m2};
constexpr rhRedOp_t kOps[] = {rhSum, rhProd, rhMax, rhMin, rhAvg, rhBand, rhBor, rhBxor};

bool IsFloat(rhDataType_t type) { return !CanReduce(type, rhBand); }

// Runs `what` with the code of every kind of CPU that this machine can run.
template <class What>
void OnEveryTarget(What what) {
  for (int64_t targets = CompiledTargets() & SupportedTargets(); targets != 0;
       targets &= targets - 1) {
    const int64_t target = targets & -targets;
    LimitTargetsForTest(target);
    const ::testing::ScopedTrace trace(__FILE__, __LINE__, hwy::TargetName(target));
    what();
  }
  LimitTargetsForTest(0);
}

Buffer Pack(rhDataType_t type, const Words& words) {
  const size_t size = SizeOf(type);
  Buffer bytes(words.size() * size);
  for (size_t i = 0; i < words.size(); ++i) {
    std::memcpy(bytes.data() + i * size, &words[i], size);  // little-endian
  }
  return bytes;
}

// Random bits; of floats many are special, or near one another so that sums round and cancel.
uint64_t RandomElement(rhDataType_t type, std::mt19937_64& random) {
  const uint64_t bits = random() >> (64 - 8 * SizeOf(type));
  if (!IsFloat(type)) return bits;
  const testing::FloatFormat format = testing::FormatOf(type);
  const uint64_t sign = bits & format.sign();
  switch (random() % 16) {
    case 0:
      return sign;
    case 1:
      return sign | format.infinity();  // of e4m3, the value 256
    case 2:
      return sign | format.largest();
    case 3:
      return bits | format.infinity();
    case 4:
      return sign | (bits % (uint64_t{1} << format.mantissa_bits));
    case 5:
    case 6:
    case 7:
      return bits;
    default: {
      const uint64_t exponent = static_cast<uint64_t>(format.bias()) + random() % 4;
      return sign | exponent << format.mantissa_bits | bits % (uint64_t{1} << format.mantissa_bits);
    }
  }
}

Words Expected(const Reduction& reduction, const std::vector<Words>& inputs) {
  Words expected(inputs[0].size());
  Words element(inputs.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    for (size_t k = 0; k < inputs.size(); ++k) element[k] = inputs[k][i];
    expected[i] = testing::ReduceElement(reduction, element);
  }
  return expected;
}

// The whole result against the whole expectation, with the first difference.
::testing::AssertionResult Same(rhDataType_t type, const std::byte* got, const std::byte* expected,
                                size_t count) {
  const size_t size = SizeOf(type);
  if (count == 0 || std::memcmp(got, expected, count * size) == 0) {
    return ::testing::AssertionSuccess();
  }
  size_t i = 0;
  while (std::memcmp(got + i * size, expected + i * size, size) == 0) ++i;
  uint64_t is = 0;
  uint64_t should = 0;
  std::memcpy(&is, got + i * size, size);
  std::memcpy(&should, expected + i * size, size);
  return ::testing::AssertionFailure() << absl::StrCat("element ", i, " is 0x", absl::Hex(is),
                                                       " instead of 0x", absl::Hex(should));
}

// How a call's memory lies: `shift` bytes after an aligned address for the first input, one element
// more for each other; the output in a place of its own, or in an input's.
struct Layout {
  size_t shift;
  int in_place;  // the input that is the output too, or -1
  Stores stores;
};

void Check(const Reduction& reduction, const std::vector<Buffer>& inputs, const Buffer& expected,
           size_t count, const Layout& layout) {
  constexpr size_t kMargin = 192;
  constexpr auto kUntouched = std::byte{0x5a};
  const size_t size = SizeOf(reduction.type);
  std::vector<Buffer> memory;
  std::vector<const std::byte*> pointers;
  for (size_t k = 0; k <= inputs.size(); ++k) {
    Buffer& buffer = memory.emplace_back(count * size + 2 * kMargin, kUntouched);
    std::byte* at = buffer.data() + 64 - reinterpret_cast<uintptr_t>(buffer.data()) % 64;
    at += layout.shift + k * size;
    if (k < inputs.size() && count > 0) std::memcpy(at, inputs[k].data(), count * size);
    pointers.push_back(at);
  }
  const bool in_place = layout.in_place >= 0;
  const size_t place = in_place ? static_cast<size_t>(layout.in_place) : inputs.size();
  const size_t before = static_cast<size_t>(pointers[place] - memory[place].data());
  std::byte* const out = memory[place].data() + before;
  pointers.pop_back();
  // Half of the layouts write copies as well: aligned like `out`, or of which one is not.
  const size_t copies = in_place == (layout.stores == Stores::kNormal) ? 2 : 0;
  std::vector<Buffer> copied(copies, Buffer(count * size + 2 * kMargin, kUntouched));
  std::vector<std::byte*> outs;
  for (size_t k = 0; k < copies; ++k) {
    const size_t other = static_cast<size_t>(out - copied[k].data()) % 64;
    outs.push_back(copied[k].data() + other + (layout.shift % 2) * k * size);
  }
  Reduce(reduction, pointers, out, count, layout.stores,
         {outs, count % 2 == 0 ? Stores::kStreaming : Stores::kNormal});
  for (size_t k = 0; k < copies; ++k) {
    ASSERT_TRUE(Same(reduction.type, outs[k], out, count)) << "copy " << k;
    std::fill_n(outs[k], count * size, kUntouched);
    ASSERT_EQ(copied[k], Buffer(copied[k].size(), kUntouched));
  }
  ASSERT_TRUE(Same(reduction.type, out, expected.data(), count))
      << "count " << count << ", shift " << layout.shift << ", in place " << layout.in_place
      << (layout.stores == Stores::kStreaming ? ", streaming" : "");
  for (size_t i = 0; i < memory[place].size(); ++i) {
    if (i == before) i += count * size;
    ASSERT_EQ(memory[place][i], kUntouched) << "at byte " << i << ", out is from " << before;
  }
  for (size_t k = 0; k < inputs.size(); ++k) {
    if (k != place) {
      ASSERT_TRUE(Same(reduction.type, pointers[k], inputs[k].data(), count)) << "input " << k;
    }
  }
}

std::string Describe(const Reduction& reduction, size_t inputs) {
  return absl::StrCat("type ", static_cast<int>(reduction.type), ", op ",
                      static_cast<int>(reduction.op), ", divisor ", reduction.divisor, ", ",
                      reduction.scalars.size(), " scalars, ", inputs, " inputs");
}

// Every count around the widths of vectors and steps (up to 256 bytes), in all layouts.
void CheckEverywhere(const Reduction& reduction, size_t inputs) {
  const ::testing::ScopedTrace trace(__FILE__, __LINE__, Describe(reduction, inputs));
  const size_t size = SizeOf(reduction.type);
  std::mt19937_64 random(inputs * 100 + static_cast<size_t>(reduction.type) * 10 +
                         static_cast<size_t>(reduction.op));
  std::vector<size_t> counts = {0, 1, 2, 3, 5, 7};
  for (const size_t bytes : {16, 32, 64, 128, 256, 320, 512, 1024}) {
    for (const size_t more : {0, 1, 2}) counts.push_back(bytes / size + more - 1);
  }
  counts.push_back(4096 / size + 1);  // the block in which integers are averaged
  std::vector<Words> words(inputs);
  std::vector<Buffer> buffers;
  for (Words& elements : words) {
    for (size_t i = 0; i < counts.back(); ++i) {
      elements.push_back(RandomElement(reduction.type, random));
    }
    buffers.push_back(Pack(reduction.type, elements));
  }
  const Buffer expected = Pack(reduction.type, Expected(reduction, words));
  const int last = static_cast<int>(inputs) - 1;
  OnEveryTarget([&] {
    for (const size_t count : counts) {
      for (const Layout& layout :
           {Layout{0, -1, Stores::kNormal}, Layout{size, -1, Stores::kStreaming},
            Layout{1, 0, Stores::kNormal}, Layout{64 - size, last, Stores::kStreaming},
            Layout{3, -1, Stores::kStreaming}, Layout{32, last, Stores::kNormal}}) {
        Check(reduction, buffers, expected, count, layout);
        if (::testing::Test::HasFatalFailure()) return;
      }
    }
  });
}

constexpr size_t kInputCounts[] = {1, 2, 3, 4, 5, 8};

TEST(ReduceTest, KnowsTypesAndOperators) {
  EXPECT_EQ(SizeOf(rhInt16), 2U);
  EXPECT_EQ(SizeOf(rhFloat64), 8U);
  EXPECT_EQ(SizeOf(rhFloat8e5m2), 1U);
  EXPECT_EQ(SizeOf(static_cast<rhDataType_t>(14)), 0U);
  EXPECT_EQ(SizeOf(static_cast<rhDataType_t>(-1)), 0U);
  EXPECT_TRUE(CanReduce(rhUint16, rhBxor));
  EXPECT_TRUE(CanReduce(rhFloat8e4m3, rhAvg));
  EXPECT_FALSE(CanReduce(rhFloat32, rhBand));
  EXPECT_FALSE(CanReduce(rhInt32, static_cast<rhRedOp_t>(8)));
  EXPECT_FALSE(CanReduce(rhInt32, static_cast<rhRedOp_t>(-1)));
  EXPECT_FALSE(CanReduce(static_cast<rhDataType_t>(14), rhSum));
}

TEST(ReduceTest, EveryTypeAndOperatorEverywhere) {
  for (const rhDataType_t type : kTypes) {
    for (const rhRedOp_t op : kOps) {
      if (!CanReduce(type, op)) continue;
      for (const size_t inputs : kInputCounts) {
        CheckEverywhere({type, op, 3, {}}, inputs);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(ReduceTest, PreMultipliedSumsAndAverages) {
  std::vector<Scalar> scalars;
  for (const double real : {0.5, -3.0, 1.0 / 3, 1e-3, 1.0, 0.0, 7e4, -1e-8}) {
    scalars.push_back({real, static_cast<uint64_t>(static_cast<int64_t>(real * 1000)) * 0x10001});
  }
  for (const rhDataType_t type : kTypes) {
    for (const size_t inputs : kInputCounts) {
      const absl::Span<const Scalar> some = absl::MakeConstSpan(scalars).subspan(0, inputs);
      CheckEverywhere({type, rhSum, 1, some}, inputs);
      CheckEverywhere({type, rhAvg, 7, some}, inputs);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(ReduceTest, DivisorsLargerThanTheType) {
  for (const rhDataType_t type : kTypes) {
    CheckEverywhere({type, rhAvg, 1, {}}, 2);
    CheckEverywhere({type, rhAvg, 300, {}}, 2);
    CheckEverywhere({type, rhAvg, std::numeric_limits<int>::max(), {}}, 3);
    if (HasFatalFailure()) return;
  }
}

// All pairs of 8-bit floats, and so all of their roundings: ties, denormals, overflow, NaN.
TEST(SmallFloatTest, AllPairsOfEightBits) {
  for (const rhDataType_t type : {rhFloat8e4m3, rhFloat8e5m2}) {
    std::vector<Words> words(2);
    for (uint64_t pair = 0; pair < 65536; ++pair) {
      words[0].push_back(pair / 256);
      words[1].push_back(pair % 256);
    }
    const std::vector<Buffer> inputs = {Pack(type, words[0]), Pack(type, words[1])};
    for (const rhRedOp_t op : {rhSum, rhProd, rhMax, rhMin, rhAvg}) {
      const Reduction reduction = {type, op, 5, {}};
      const Buffer expected = Pack(type, Expected(reduction, words));
      OnEveryTarget([&] {
        Check(reduction, inputs, expected, words[0].size(), {0, -1, Stores::kNormal});
      });
      if (HasFatalFailure()) return;
    }
  }
}

// All bit patterns into fp32 and back, unchanged and through factors that make denormals, ties
// (of one bit more than the format has) and overflow.
TEST(SmallFloatTest, AllBitPatterns) {
  for (const rhDataType_t type : kSmallFloats) {
    Words patterns;
    for (uint64_t bits = 0; bits < uint64_t{1} << (8 * SizeOf(type)); ++bits) {
      patterns.push_back(bits);
    }
    for (const double factor :
         {1.0, -1.0, 0.5, 1.5, 1.25, 1.0 + 0x1p-8, 1.0 + 0x1p-11, 1.0 / 3, 0x1p-6, 0x1p-12, 3e-5,
          0x1p-24, 0x1p-120, 1e4, 0x1p100, 0.0, static_cast<double>(NAN), HUGE_VAL}) {
      const Scalar scalar = {factor, 0};
      const Reduction reduction = {type, rhSum, 1, {&scalar, 1}};
      const Buffer expected = Pack(type, Expected(reduction, {patterns}));
      OnEveryTarget([&] {
        Check(reduction, {Pack(type, patterns)}, expected, patterns.size(),
              {0, -1, Stores::kNormal});
      });
      ASSERT_FALSE(HasFatalFailure()) << "factor " << factor << ", type " << type;
    }
  }
}

// What the header promises, in numbers.
TEST(SmallFloatTest, RoundsOnceAndOverflowsAsDocumented) {
  const auto sum = [](rhDataType_t type, const Words& elements) {
    std::vector<Buffer> inputs;
    std::vector<const std::byte*> pointers;
    for (const uint64_t element : elements) inputs.push_back(Pack(type, {element}));
    for (const Buffer& input : inputs) pointers.push_back(input.data());
    uint64_t out = 0;
    Reduce({type, rhSum, 1, {}}, pointers, reinterpret_cast<std::byte*>(&out), 1, Stores::kNormal);
    return out;
  };
  // bf16: 1 + 2^-8 + 2^-8 is 1 + 2^-7; rounded after each addition it would stay 1.
  EXPECT_EQ(sum(rhBfloat16, {0x3f80, 0x3b80, 0x3b80}), 0x3f81U);
  EXPECT_EQ(sum(rhFloat16, {0x7bff, 0x7bff}), 0x7c00U);
  EXPECT_EQ(sum(rhBfloat16, {0xff7f, 0xff7f}), 0xff80U);
  EXPECT_EQ(sum(rhFloat8e5m2, {0x7b, 0x7b}), 0x7cU);
  EXPECT_EQ(sum(rhFloat8e4m3, {0x7e, 0x7e}), 0x7eU) << "448 + 448 is 448";
  EXPECT_EQ(sum(rhFloat8e4m3, {0xfe, 0xfe}), 0xfeU);
  EXPECT_EQ(sum(rhFloat8e4m3, {0xff, 0x38}), 0x7fU) << "NaN";
  EXPECT_EQ(sum(rhFloat8e5m2, {0x7c, 0xfc}), 0x7eU) << "infinity - infinity";
  EXPECT_EQ(sum(rhFloat16, {0xfdab}), 0xfdabU) << "alone, even a NaN is copied";
}

// Ranks whose programs flush denormals or round upwards must come to the others' results.
TEST(ReduceTest, TheThreadsFloatModeDoesNotMatter) {
  const float denormal = 1e-40F;
  const float big = 1;
  const std::byte* inputs[] = {reinterpret_cast<const std::byte*>(&denormal),
                               reinterpret_cast<const std::byte*>(&denormal)};
  const std::byte* rounds[] = {reinterpret_cast<const std::byte*>(&big), inputs[0]};
  float twice = 0;
  float rounded = 0;
  std::fenv_t saved;
  std::fegetenv(&saved);
  std::fesetround(FE_UPWARD);
#if defined(__x86_64__)
  _mm_setcsr(_mm_getcsr() | 0x8040);  // flush results, and take denormals for zero
  const unsigned mode = _mm_getcsr();
#endif
  Reduce({}, inputs, reinterpret_cast<std::byte*>(&twice), 1, Stores::kNormal);
  Reduce({}, rounds, reinterpret_cast<std::byte*>(&rounded), 1, Stores::kNormal);
#if defined(__x86_64__)
  EXPECT_EQ(_mm_getcsr() & ~0x3fU, mode & ~0x3fU) << "the mode is the caller's again";
#endif
  EXPECT_EQ(std::fegetround(), FE_UPWARD);
  std::fesetenv(&saved);
  EXPECT_EQ(std::memcmp(&rounded, &big, sizeof big), 0);
  const float expected = denormal + denormal;
  EXPECT_EQ(std::memcmp(&twice, &expected, sizeof twice), 0);
}

TEST(CopyTest, CopiesAtAnyAlignmentAndLength) {
  std::mt19937_64 random(1);
  OnEveryTarget([&] {
    for (size_t bytes = 0; bytes < 700; bytes += 1 + random() % 7) {
      for (const Stores stores : {Stores::kNormal, Stores::kStreaming}) {
        std::string in(bytes + 64, 'i');
        for (char& c : in) c = static_cast<char>(random());
        std::string out(bytes + 130, 'o');
        const size_t from = random() % 64;
        const size_t to = 1 + random() % 64;
        auto* source = reinterpret_cast<std::byte*>(in.data() + from);
        Copy(source, reinterpret_cast<std::byte*>(out.data() + to), bytes, stores);
        ASSERT_EQ(out.substr(to, bytes), in.substr(from, bytes));
        ASSERT_EQ(out.substr(0, to), std::string(to, 'o'));
        ASSERT_EQ(out.substr(to + bytes), std::string(out.size() - to - bytes, 'o'));
        const std::string before = in;
        Copy(source, source, bytes, stores);
        ASSERT_EQ(in, before);
      }
    }
  });
  Copy(nullptr, nullptr, 0, Stores::kStreaming);
  Reduce({}, {nullptr, nullptr}, nullptr, 0, Stores::kNormal);
}

}  // namespace
}  // namespace railhead::reduce
