// SPDX-License-Identifier: Apache-2.0
#include "operator/objects/variable_name.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

namespace railhead::op {
namespace {

constexpr size_t kLongestName = 128;

constexpr absl::string_view kComputed[] = {
    "RANK",         "WORLD_SIZE",    "MASTER_ADDR",           "MASTER_PORT", "RAILHEAD_JOB",
    "RAILHEAD_POD", "RAILHEAD_NODE", "RAILHEAD_METRICS_PORT", "NCCL_IB_HCA", "RAILHEAD_NOT_DONE"};

}  // namespace

bool IsVariableName(absl::string_view name) {
  if (name.empty() || name.size() > kLongestName || (name[0] >= '0' && name[0] <= '9')) {
    return false;
  }
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

bool IsComputedVariable(absl::string_view name) {
  return std::find(std::begin(kComputed), std::end(kComputed), name) != std::end(kComputed);
}

}  // namespace railhead::op
