// SPDX-License-Identifier: Apache-2.0
//
// Names of NCCL's calls in its profiler events, translated into those of Railhead's metrics. What a
// newer NCCL may add is "other", so that there is a bounded number of series. Pure.
#ifndef RAILHEAD_PLUGINS_NCCL_PROFILER_NAMES_H_
#define RAILHEAD_PLUGINS_NCCL_PROFILER_NAMES_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace railhead::nccl {

// Values of the labels `collective` and `algorithm`.
inline constexpr std::array<const char*, 12> kCallNames = {
    "all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce",        "send",
    "receive",    "all_to_all", "gather",         "scatter",   "other_process", "other"};
inline constexpr std::array<const char*, 9> kAlgorithmNames = {
    "ring",      "tree", "collnet_direct", "collnet_chain", "nvls",
    "nvls_tree", "pat",  "direct",         "other"};
// Of transfers that another process has started: their call is not known.
inline constexpr uint8_t kOtherProcess = 10;

struct CallName {
  uint8_t call = 0;       // of kCallNames
  uint8_t algorithm = 0;  // of kAlgorithmNames
  // Each rank's element count is a part: the larger of its buffers has one for every rank.
  bool is_part = false;
  // Every rank that sends does so before it needs data of another rank.
  bool sends_first = false;
};

// NCCL's words, such as "AllReduce" and "RING". Sends and receives have no algorithm.
CallName NameOf(absl::string_view function, absl::string_view algorithm);
// Bytes of an element ("ncclFloat32"); 1 if unknown.
size_t ElementBytes(absl::string_view type);

// The words for the numbers of version 1 of the interface; "" if unknown.
absl::string_view FunctionWord(uint8_t number);
absl::string_view AlgorithmWord(uint8_t number);
absl::string_view TypeWord(uint8_t number);

}  // namespace railhead::nccl

#endif  // RAILHEAD_PLUGINS_NCCL_PROFILER_NAMES_H_
