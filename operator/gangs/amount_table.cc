// SPDX-License-Identifier: Apache-2.0
#include "operator/gangs/amount_table.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

namespace railhead::op::gangs {
namespace {

constexpr int64_t kOneDevice = 1000;
constexpr int64_t kMostDevices = 1'000'000;

}  // namespace

AmountTable::AmountTable(const std::vector<NodeValue>& nodes, RdmaResources rdma)
    : rdma_(std::move(rdma)) {
  std::set<std::string> names;
  for (const NodeValue& node : nodes) {
    for (const auto& [name, amount] : node->allocatable) names.insert(name);
  }
  for (const std::string& name : names) {
    const size_t column = columns_.size();
    if (rdma_.Contains(name)) hcas_.push_back(column);
    if (IsGpus(name)) gpus_.push_back(column);
    columns_[name] = static_cast<int>(column);
  }
  allocatable_.resize(nodes.size() * columns_.size());
  free_.resize(allocatable_.size());
  used_.resize(allocatable_.size());
  hcas_of_no_node_.resize(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) SetAllocatable(i, nodes[i]->allocatable);
}

Amounts AmountTable::Read(const Resources& resources) const {
  Amounts amounts;
  amounts.of.reserve(resources.size());
  for (const auto& [name, amount] : resources) {
    if (amount <= 0) continue;
    const auto column = columns_.find(name);
    amounts.of.push_back({column == columns_.end() ? Amounts::kOnNoNode : column->second, amount});
    if (column == columns_.end() && rdma_.Contains(name)) {
      amounts.hcas_of_no_node =
          std::min(kMostDevices, amounts.hcas_of_no_node + amount / kOneDevice);
    }
  }
  return amounts;
}

void AmountTable::SetFree(size_t at) {
  const auto all = static_cast<absl::uint128>(allocatable_[at]);
  free_[at] = used_[at] >= all ? 0 : allocatable_[at] - static_cast<int64_t>(used_[at]);
}

void AmountTable::Add(size_t node, const Amounts& amounts) {
  for (const Amounts::Of& of : amounts.of) {
    if (of.column == Amounts::kOnNoNode) continue;
    const size_t at = At(node, static_cast<size_t>(of.column));
    used_[at] += static_cast<absl::uint128>(of.amount);
    SetFree(at);
  }
  hcas_of_no_node_[node] += amounts.hcas_of_no_node;
}

void AmountTable::Remove(size_t node, const Amounts& amounts) {
  for (const Amounts::Of& of : amounts.of) {
    if (of.column == Amounts::kOnNoNode) continue;
    const size_t at = At(node, static_cast<size_t>(of.column));
    used_[at] -= static_cast<absl::uint128>(of.amount);
    SetFree(at);
  }
  hcas_of_no_node_[node] -= amounts.hcas_of_no_node;
}

bool AmountTable::SetAllocatable(size_t node, const Resources& allocatable) {
  for (const auto& [name, amount] : allocatable) {
    if (!columns_.contains(name)) return false;
  }
  for (const auto& [name, column] : columns_) {
    const size_t at = At(node, static_cast<size_t>(column));
    const auto has = allocatable.find(name);
    allocatable_[at] = has == allocatable.end() ? 0 : has->second;
    SetFree(at);
  }
  return true;
}

int64_t AmountTable::FitsOf(size_t node, const Amounts::Of& of) const {
  if (of.column == Amounts::kOnNoNode) return 0;
  return free_[At(node, static_cast<size_t>(of.column))] / of.amount;
}

int64_t AmountTable::Fits(size_t node, const Amounts& amounts) const {
  int64_t pods = std::numeric_limits<int64_t>::max();
  for (const Amounts::Of& of : amounts.of) pods = std::min(pods, FitsOf(node, of));
  return pods;
}

bool AmountTable::Has(size_t node, const Amounts::Of& of) const {
  return of.column != Amounts::kOnNoNode &&
         allocatable_[At(node, static_cast<size_t>(of.column))] >= of.amount;
}

int AmountTable::HcasInUse(size_t node) const {
  absl::uint128 sum = static_cast<absl::uint128>(hcas_of_no_node_[node]);
  for (const size_t column : hcas_) sum += used_[At(node, column)] / kOneDevice;
  return static_cast<int>(std::min<absl::uint128>(sum, kMostDevices));
}

int AmountTable::CountFree(size_t node, const std::vector<size_t>& columns) const {
  int64_t sum = 0;
  for (const size_t column : columns) sum += free_[At(node, column)] / kOneDevice;
  return static_cast<int>(std::min(sum, kMostDevices));
}

int AmountTable::FreeHcas(size_t node) const { return CountFree(node, hcas_); }

int AmountTable::FreeGpus(size_t node) const { return CountFree(node, gpus_); }

}  // namespace railhead::op::gangs
