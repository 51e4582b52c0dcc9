// SPDX-License-Identifier: Apache-2.0
#include "operator/profiles/fabric_facts.h"

#include "absl/strings/numbers.h"

namespace railhead::op {
namespace {

constexpr char kRails[] = "railhead.io/rails";
constexpr char kLinkLayer[] = "railhead.io/link-layer";
constexpr char kGpus[] = "railhead.io/gpus";
constexpr char kGpuDirect[] = "railhead.io/gpudirect";

std::string LabelOr(const LabelSet& labels, const char* key, const char* otherwise) {
  const std::string* found = labels.Find(key);
  return found == nullptr ? otherwise : *found;
}

int CountOf(const LabelSet& labels, const char* key) {
  int count = 0;
  return absl::SimpleAtoi(LabelOr(labels, key, "0"), &count) ? count : 0;
}

}  // namespace

void FabricFacts::AddNode(const std::string& name, const LabelSet& labels) {
  if (CountOf(labels, kRails) <= 0) return;
  ++nodes;
  if (const std::string layer = LabelOr(labels, kLinkLayer, ""); !layer.empty()) {
    ++link_layers[layer];
  }
  if (CountOf(labels, kGpus) <= 0) return;
  const std::string way = LabelOr(labels, kGpuDirect, "none");
  if (way == "dmabuf" || way == "peermem") {
    ++gpu_direct;
  } else {
    ++no_gpu_direct;
    no_gpu_direct_node = name;
  }
}

std::optional<Labels> FabricLabels(const LabelSet& labels) {
  if (CountOf(labels, kRails) <= 0) return std::nullopt;
  Labels kept;
  for (const char* key : {kRails, kLinkLayer, kGpus, kGpuDirect}) {
    if (const std::string* found = labels.Find(key); found != nullptr) kept[key] = *found;
  }
  return kept;
}

}  // namespace railhead::op
