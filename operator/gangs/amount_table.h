// SPDX-License-Identifier: Apache-2.0
//
// Resources of many nodes as rows of numbers, so that "how many such pods fit on this node" looks
// up no names. Pure.
#ifndef RAILHEAD_OPERATOR_GANGS_AMOUNT_TABLE_H_
#define RAILHEAD_OPERATOR_GANGS_AMOUNT_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/numeric/int128.h"
#include "operator/gangs/node_tree.h"
#include "operator/gangs/resources.h"

namespace railhead::op::gangs {

// What a pod asks for: its resources of which it wants any, in the order of their names.
struct Amounts {
  static constexpr int kOnNoNode = -1;
  struct Of {
    int column = kOnNoNode;  // of the table; kOnNoNode: no node has such a resource
    int64_t amount = 0;      // more than 0, in thousandths
  };
  std::vector<Of> of;
  int64_t hcas_of_no_node = 0;  // in whole devices
};

// What each node has, and what of that is in use. A resource that no node has is in no row.
// Sums are exact: what was added can be removed again, in any order.
class AmountTable {
 public:
  explicit AmountTable(const std::vector<NodeValue>& nodes, RdmaResources rdma = {});

  Amounts Read(const Resources& resources) const;

  void Add(size_t node, const Amounts& amounts);
  void Remove(size_t node, const Amounts& amounts);
  // What the node has from now on. False, and nothing is changed, where it has a resource that no
  // node had when the table was made.
  bool SetAllocatable(size_t node, const Resources& allocatable);

  // How many pods fit that ask for this much; as many as can be counted if they ask for nothing.
  int64_t Fits(size_t node, const Amounts& amounts) const;
  // How many fit of these amounts alone.
  int64_t FitsOf(size_t node, const Amounts::Of& of) const;
  // Whether the node has as much at all, in use or not.
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
  std::vector<int64_t> free_;         // never below nothing
  // Wide, as pods that a node does not have room for may be bound to it all the same.
  std::vector<absl::uint128> used_;
  std::vector<int64_t> hcas_of_no_node_;  // in use, of each node
};

}  // namespace railhead::op::gangs

#endif  // RAILHEAD_OPERATOR_GANGS_AMOUNT_TABLE_H_
