// SPDX-License-Identifier: Apache-2.0
//
// What one channel does for one work.
#ifndef RAILHEAD_TESTS_NCCL_STOCK_KERNELS_WORK_H_
#define RAILHEAD_TESTS_NCCL_STOCK_KERNELS_WORK_H_

#include <cstddef>
#include <vector>

#include "tests/nccl/stock/kernels/functions.h"
#include "tests/nccl/stock/kernels/layout.h"
#include "tests/nccl/stock/kernels/primitives.h"

namespace railhead::stock {

struct Block {
  const Version& version;
  const Communicator& communicator;
  const Channel& channel;
  int number;  // of the channel
};

// The part of a collective's elements that this channel has.
struct Part {
  Function function;
  const Collective& work;
  uint64_t argument;
  size_t begin, elements, chunk;
  size_t count;  // elements of all channels

  char* Sent(size_t element) const { return work.send + element * BytesOf(function.type); }
  char* Received(size_t element) const { return work.receive + element * BytesOf(function.type); }
};

void RunRing(const Block& block, const Part& part);  // all collectives
void RunTree(const Block& block, const Part& part);  // all-reduce

void RunCollective(const Block& block, const Function& function, const Collective& work);
void RunSend(const Block& block, const Transfer& work);
void RunReceive(const Block& block, const Transfer& work);

}  // namespace railhead::stock

#endif  // RAILHEAD_TESTS_NCCL_STOCK_KERNELS_WORK_H_
