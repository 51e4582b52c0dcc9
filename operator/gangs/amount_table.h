// SPDX-License-Identifier: Apache-2.0
//
// Resources of many nodes as rows of numbers, so that counting the pods that fit on a node looks up
// no names. Pure.
#ifndef RAILHEAD_OPERATOR_GANGS_AMOUNT_TABLE_H_
#define RAILHEAD_OPERATOR_GANGS_AMOUNT_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/numeric/int128.h"
#include "operator/gangs/node_tree.h"
#include "operator/objects/resources.h"

namespace railhead::op::gangs {

// Requested amounts of a pod: resources with a non-zero amount, by name.
struct Amounts {
  static constexpr int kOnNoNode = -1;
  struct Of {
    int column = kOnNoNode;  // of the table; kOnNoNode: no node has the resource
    int64_t amount = 0;      // above 0, in thousandths
  };
  std::vector<Of> of;
  int64_t hcas_of_no_node = 0;  // in whole devices
};

// Allocatable and used resources of each node. A resource that no node has is not in the table.
// Sums are exact: amounts can be removed in any order.
class AmountTable {
 public:
  explicit AmountTable(const std::vector<NodeValue>& nodes, RdmaResources rdma = {});

  Amounts Read(const Resources& resources) const;

  void Add(size_t node, const Amounts& amounts);
  void Remove(size_t node, const Amounts& amounts);
  // Sets what the node has. Returns false without a change if it has a resource that no node had
  // when the table was created.
  bool SetAllocatable(size_t node, const Resources& allocatable);

  // Returns the number of pods with these amounts that fit; the maximum of int64_t if they request
  // nothing.
  int64_t Fits(size_t node, const Amounts& amounts) const;
  // Returns the same for this resource only.
  int64_t FitsOf(size_t node, const Amounts::Of& of) const;
  // Returns whether the node's allocatable amount suffices, in use or not.
  bool Has(size_t node, const Amounts::Of& of) const;

  int HcasInUse(size_t node) const;
  int FreeHcas(size_t node) const;
  int FreeGpus(size_t node) const;

 private:
  size_t At(size_t node, size_t column) const { return node * columns_.size() + column; }
  void SetFree(size_t at);
  int CountFree(size_t node, const std::vector<size_t>& columns) const;

  RdmaResources rdma_;
  std::unordered_map<std::string, int> columns_;  // by the resource's name
  std::vector<size_t> hcas_;                      // columns
  std::vector<size_t> gpus_;
  std::vector<int64_t> allocatable_;  // [At(node, column)]
  std::vector<int64_t> free_;         // never below 0
  // Wide, since pods may be bound to a node without room for them.
  std::vector<absl::uint128> used_;
  std::vector<int64_t> hcas_of_no_node_;  // in use, by node
};

}  // namespace railhead::op::gangs

#endif  // RAILHEAD_OPERATOR_GANGS_AMOUNT_TABLE_H_
