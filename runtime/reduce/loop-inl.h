// SPDX-License-Identifier: Apache-2.0
//
// Loop of every kernel over memory. A Format converts a vector of bytes into vectors to compute
// with (kParts of them) and back; an Operator computes. Four vectors stay in registers from the
// first input to the last, for any number of inputs.

// Included once for each target: Highway's kind of guard.
#if defined(RAILHEAD_RUNTIME_REDUCE_LOOP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RAILHEAD_RUNTIME_REDUCE_LOOP_INL_H_
#undef RAILHEAD_RUNTIME_REDUCE_LOOP_INL_H_
#else
#define RAILHEAD_RUNTIME_REDUCE_LOOP_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "runtime/reduce/kernels.h"

HWY_BEFORE_NAMESPACE();
namespace railhead::reduce::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using ByteTag = hn::ScalableTag<uint8_t>;
using ByteVector = hn::Vec<ByteTag>;

inline constexpr size_t kVectorBytes = HWY_LANES(uint8_t);
inline constexpr size_t kAtOnce = 4;

template <class Format>
inline constexpr size_t kStepVectors = kAtOnce / Format::kParts;
template <class Format>
inline constexpr size_t kStepBytes = kVectorBytes*(kAtOnce / Format::kParts);

// On plain code's target, where speed is lost, calls keep the code small.
#undef RAILHEAD_STEP
#if HWY_TARGET == HWY_EMU128
#define RAILHEAD_STEP HWY_NOINLINE
#else
#define RAILHEAD_STEP HWY_INLINE
#endif

template <class Format>
RAILHEAD_STEP void LoadStep(const std::byte* from, typename Format::Vector (&to)[kAtOnce]) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(from);
  for (size_t i = 0; i < kStepVectors<Format>; ++i) {
    Format::Unpack(hn::LoadU(ByteTag(), bytes + i * kVectorBytes), to + i * Format::kParts);
  }
}

template <class Format>
RAILHEAD_STEP void Pack(const typename Format::Vector (&from)[kAtOnce],
                        ByteVector (&to)[kStepVectors<Format>]) {
  for (size_t i = 0; i < kStepVectors<Format>; ++i) to[i] = Format::Pack(from + i * Format::kParts);
}

template <size_t kVectors>
RAILHEAD_STEP void Store(const ByteVector (&from)[kVectors], std::byte* to, bool streaming) {
  auto* bytes = reinterpret_cast<uint8_t*>(to);
  for (size_t i = 0; i < kVectors; ++i) {
    if (streaming) {
      hn::Stream(from[i], ByteTag(), bytes + i * kVectorBytes);
    } else {
      hn::StoreU(from[i], ByteTag(), bytes + i * kVectorBytes);
    }
  }
}

// Partial vectors. With byte masks nothing else is accessed; otherwise a buffer is used, which is
// several times slower.
#undef RAILHEAD_BYTE_MASKS
#if HWY_TARGET == HWY_AVX3
#define RAILHEAD_BYTE_MASKS 1
#else
#define RAILHEAD_BYTE_MASKS 0
#endif

template <size_t kElementBytes>
HWY_INLINE ByteVector LoadPart(const std::byte* from, size_t bytes) {
#if RAILHEAD_BYTE_MASKS
  const ByteTag tag;
  return hn::MaskedLoad(hn::FirstN(tag, bytes), tag, reinterpret_cast<const uint8_t*>(from));
#else
#if HWY_TARGET == HWY_AVX2
  // It has masks of words. Its stores by mask are slow on some CPUs.
  if constexpr (kElementBytes % sizeof(uint32_t) == 0) {
    const hn::Repartition<uint32_t, ByteTag> words;
    const auto mask = hn::FirstN(words, bytes / sizeof(uint32_t));
    return hn::BitCast(ByteTag(),
                       hn::MaskedLoad(mask, words, reinterpret_cast<const uint32_t*>(from)));
  }
#endif
  alignas(kVectorBytes) uint8_t buffer[kVectorBytes] = {};
  std::memcpy(buffer, from, bytes);
  return hn::Load(ByteTag(), buffer);
#endif
}

HWY_INLINE void StorePart(ByteVector from, std::byte* to, size_t bytes) {
#if RAILHEAD_BYTE_MASKS
  const ByteTag tag;
  hn::BlendedStore(from, hn::FirstN(tag, bytes), tag, reinterpret_cast<uint8_t*>(to));
#else
  alignas(kVectorBytes) uint8_t buffer[kVectorBytes];
  hn::Store(from, ByteTag(), buffer);
  std::memcpy(to, buffer, bytes);
#endif
}

// Returns the bytes of a partial step that are in vector `i`.
HWY_INLINE size_t BytesOf(size_t i, size_t bytes) {
  const size_t begin = i * kVectorBytes;
  return bytes > begin ? std::min(bytes - begin, kVectorBytes) : 0;
}

// Partial steps: before the first aligned store, and at the end.
template <class Format>
RAILHEAD_STEP void LoadPart(const std::byte* from, size_t bytes,
                            typename Format::Vector (&to)[kAtOnce]) {
  for (size_t i = 0; i < kStepVectors<Format>; ++i) {
    const size_t part = BytesOf(i, bytes);
    const ByteVector loaded = part == 0
                                  ? hn::Zero(ByteTag())
                                  : LoadPart<Format::kElementBytes>(from + i * kVectorBytes, part);
    Format::Unpack(loaded, to + i * Format::kParts);
  }
}

template <size_t kVectors>
RAILHEAD_STEP void StorePart(const ByteVector (&from)[kVectors], std::byte* to, size_t bytes) {
  for (size_t i = 0; i < kVectors; ++i) {
    const size_t part = BytesOf(i, bytes);
    if (part > 0) StorePart(from[i], to + i * kVectorBytes, part);
  }
}

// Outputs to write past the caches.
struct Streaming {
  bool out;
  bool copies;
};

// `kInputs` is the number of inputs, or 0: that of the call. `bytes` is for partial steps only.
template <class Format, class Operator, size_t kInputs, bool kIsPart>
HWY_INLINE void Step(const Call& call, const Operator& op, size_t at, size_t bytes,
                     Streaming streaming) {
  const auto load = [&](size_t input, typename Format::Vector(&to)[kAtOnce]) HWY_ATTR {
    const std::byte* from = call.inputs[input] + call.skip + at;
    if constexpr (kIsPart) {
      LoadPart<Format>(from, bytes, to);
    } else {
      LoadStep<Format>(from, to);
    }
    for (auto& value : to) value = op.Prepare(value, input);
  };
  const size_t inputs = kInputs == 0 ? call.input_count : kInputs;
  typename Format::Vector result[kAtOnce];
  load(0, result);
  for (size_t input = 1; input < inputs; ++input) {
    typename Format::Vector next[kAtOnce];
    load(input, next);
    for (size_t i = 0; i < kAtOnce; ++i) result[i] = op.Join(result[i], next[i]);
  }
  for (auto& value : result) value = op.Finish(value);
  ByteVector packed[kStepVectors<Format>];
  Pack<Format>(result, packed);
  if constexpr (kIsPart) {
    StorePart(packed, call.out + at, bytes);
    for (std::byte* out : call.copies.outs) StorePart(packed, out + at, bytes);
  } else {
    Store(packed, call.out + at, streaming.out);
    for (std::byte* out : call.copies.outs) Store(packed, out + at, streaming.copies);
  }
}

// Prefetches input of later steps. CPUs do so too, but not across pages, and with fewer lines in
// flight the more there is to compute per line: from memory, 16-bit floats become 1.5 times as
// fast, and 8-bit floats 1.7 times. Harmless beyond the end.
template <size_t kInputs>
HWY_INLINE void FetchAhead(const Call& call, size_t at, size_t bytes) {
  constexpr size_t kAhead = 512;
  constexpr size_t kLine = 64;
  const size_t inputs = kInputs == 0 ? call.input_count : kInputs;
  for (size_t input = 0; input < inputs; ++input) {
    const std::byte* const from = call.inputs[input] + call.skip + at + kAhead;
    for (size_t line = 0; line < bytes; line += kLine) hwy::Prefetch(from + line);
  }
}

// Partial steps are rare: one function for any number of inputs.
template <class Format, class Operator>
HWY_NOINLINE void StepPart(const Call& call, const Operator& op, size_t at, size_t bytes) {
  Step<Format, Operator, 0, true>(call, op, at, bytes, {false, false});
}

template <class Format, class Operator, size_t kInputs>
HWY_NOINLINE void Run(const Call& call, const Operator& op) {
  constexpr size_t kBytes = kStepBytes<Format>;
  const size_t misaligned = reinterpret_cast<uintptr_t>(call.out) % kVectorBytes;
  const bool can_align = misaligned % Format::kElementBytes == 0;
  size_t at = 0;
  if (misaligned != 0 && can_align) {
    at = std::min(kVectorBytes - misaligned, call.bytes);
    StepPart<Format, Operator>(call, op, 0, at);
  }
  const auto like_out = [&](const std::byte* other) {
    return (reinterpret_cast<uintptr_t>(other) - reinterpret_cast<uintptr_t>(call.out)) %
               kVectorBytes ==
           0;
  };
  Streaming streaming = {call.streaming && can_align,
                         call.copies.stores == Stores::kStreaming && can_align};
  for (const std::byte* other : call.copies.outs) streaming.copies &= like_out(other);
  for (; call.bytes - at >= kBytes; at += kBytes) {
    FetchAhead<kInputs>(call, at, kBytes);
    Step<Format, Operator, kInputs, false>(call, op, at, kBytes, streaming);
  }
  if (at < call.bytes) StepPart<Format, Operator>(call, op, at, call.bytes - at);
  if (streaming.out || streaming.copies) hwy::FlushStream();
}

// Uses specialized code for the most common numbers of inputs.
template <class Format, class Operator>
HWY_INLINE void RunByInputs(const Call& call, const Operator& op) {
#if HWY_TARGET != HWY_EMU128  // where speed is lost, and much code made of it
  switch (call.input_count) {
    case 2:
      return Run<Format, Operator, 2>(call, op);
    case 3:
      return Run<Format, Operator, 3>(call, op);
    case 4:
      return Run<Format, Operator, 4>(call, op);
    default:
      break;
  }
#endif
  Run<Format, Operator, 0>(call, op);
}

}  // namespace railhead::reduce::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the guard of a target
