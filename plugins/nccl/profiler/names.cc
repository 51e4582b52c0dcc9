// SPDX-License-Identifier: Apache-2.0
#include "plugins/nccl/profiler/names.h"

#include <string>
#include <utility>

#include "absl/strings/match.h"

namespace railhead::nccl {
namespace {

// NCCL's words; an index is that of the translation.
constexpr std::array<absl::string_view, 10> kFunctions = {
    "AllReduce", "AllGather", "ReduceScatter", "Broadcast", "Reduce",
    "Send",      "Recv",      "AlltoAll",      "Gather",    "Scatter"};
constexpr std::array<absl::string_view, 7> kAlgorithms = {
    "RING", "TREE", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT"};
constexpr uint8_t kOtherCall = kCallNames.size() - 1;
constexpr uint8_t kDirect = 7;
constexpr uint8_t kOtherAlgorithm = kAlgorithmNames.size() - 1;
static_assert(absl::string_view(kCallNames[kOtherProcess]) == "other_process");
static_assert(absl::string_view(kAlgorithmNames[kDirect]) == "direct");

constexpr uint8_t kAllReduce = 0;
constexpr uint8_t kAllGather = 1;
constexpr uint8_t kReduceScatter = 2;
constexpr uint8_t kSend = 5;
constexpr uint8_t kReceive = 6;
constexpr uint8_t kRing = 0;

template <size_t kCount>
uint8_t Find(const std::array<absl::string_view, kCount>& words, absl::string_view word,
             uint8_t otherwise) {
  for (size_t i = 0; i < kCount; ++i) {
    if (words[i] == word) return static_cast<uint8_t>(i);
  }
  return otherwise;
}

template <size_t kCount>
absl::string_view At(const std::array<absl::string_view, kCount>& words, uint8_t number) {
  return number < kCount ? words[number] : absl::string_view();
}

}  // namespace

CallName NameOf(absl::string_view function, absl::string_view algorithm) {
  CallName name;
  name.call = Find(kFunctions, function, kOtherCall);
  const bool is_transfer = name.call == kSend || name.call == kReceive;
  name.algorithm = is_transfer ? kDirect : Find(kAlgorithms, algorithm, kOtherAlgorithm);
  name.is_part = name.call == kAllGather || name.call == kReduceScatter;
  name.sends_first =
      name.call == kSend || (name.algorithm == kRing && (name.call == kAllReduce || name.is_part));
  return name;
}

size_t ElementBytes(absl::string_view type) {
  for (const auto& [bits, bytes] :
       {std::pair<const char*, size_t>("64", 8), {"32", 4}, {"16", 2}}) {
    if (absl::EndsWith(type, bits)) return bytes;
  }
  return 1;
}

absl::string_view FunctionWord(uint8_t number) {
  static constexpr std::array<absl::string_view, 8> kWords = {
      "Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce", "SendRecv", "Send", "Recv"};
  return At(kWords, number);
}

absl::string_view AlgorithmWord(uint8_t number) {
  static constexpr std::array<absl::string_view, 7> kWords = {
      "TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT"};
  return At(kWords, number);
}

absl::string_view TypeWord(uint8_t number) {
  static constexpr std::array<absl::string_view, 10> kWords = {
      "ncclInt8",   "ncclUint8",   "ncclInt32",   "ncclUint32",  "ncclInt64",
      "ncclUint64", "ncclFloat16", "ncclFloat32", "ncclFloat64", "ncclBfloat16"};
  return At(kWords, number);
}

}  // namespace railhead::nccl
