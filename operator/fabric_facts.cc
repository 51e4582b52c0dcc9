// SPDX-License-Identifier: Apache-2.0
#include "operator/fabric_facts.h"

#include "absl/strings/numbers.h"

namespace railhead::op {
namespace {

std::string LabelOr(const Labels& labels, const char* key, const char* otherwise) {
  const auto found = labels.find(key);
  return found == labels.end() ? otherwise : found->second;
}

int CountOf(const Labels& labels, const char* key) {
  int count = 0;
  return absl::SimpleAtoi(LabelOr(labels, key, "0"), &count) ? count : 0;
}

}  // namespace

void FabricFacts::AddNode(const std::string& name, const Labels& labels) {
  if (CountOf(labels, "railhead.io/rails") <= 0) return;
  ++nodes;
  if (const std::string layer = LabelOr(labels, "railhead.io/link-layer", ""); !layer.empty()) {
    ++link_layers[layer];
  }
  if (CountOf(labels, "railhead.io/gpus") <= 0) return;
  const std::string way = LabelOr(labels, "railhead.io/gpudirect", "none");
  if (way == "dmabuf" || way == "peermem") {
    ++gpu_direct;
  } else {
    ++no_gpu_direct;
    no_gpu_direct_node = name;
  }
}

}  // namespace railhead::op
