// SPDX-License-Identifier: Apache-2.0
//
// The calls of NCCL that the test makes, each with its input and the result that every element of
// the output must have.
#ifndef RAILHEAD_TESTS_NCCL_STOCK_RANK_CALLS_H_
#define RAILHEAD_TESTS_NCCL_STOCK_RANK_CALLS_H_

#include <cstddef>
#include <optional>
#include <string>

#include "tests/nccl/stock/rank/elements.h"
#include "tests/nccl/stock/rank/nccl.h"

namespace railhead::stock {

// One use of a call. Both buffers have count * ranks elements.
struct Use {
  const Nccl& nccl;
  const ElementType& type;
  CommHandle comm;
  StreamHandle stream;
  int rank, ranks, round;
  size_t count;
  char *input, *output;

  int root() const { return round % ranks; }
  int next() const { return (rank + 1) % ranks; }
  int previous() const { return (rank + ranks - 1) % ranks; }
};

struct Call {
  std::string name;
  int (*start)(const Use&);  // returns NCCL's result
  // The value of an element of the output; nullopt: any.
  std::optional<double> (*expected)(const Use&, size_t index);
  double (*input)(int rank, int round, size_t index) = Value;
  bool rounds = false;  // the type's tolerance applies
};

// Ends the process if there is no call of this name.
const Call& CallOf(const std::string& name);

}  // namespace railhead::stock

#endif  // RAILHEAD_TESTS_NCCL_STOCK_RANK_CALLS_H_
