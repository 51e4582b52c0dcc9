// SPDX-License-Identifier: Apache-2.0
//
// The functions of NCCL's kernels by their numbers.
#ifndef RAILHEAD_TESTS_NCCL_STOCK_KERNELS_FUNCTIONS_H_
#define RAILHEAD_TESTS_NCCL_STOCK_KERNELS_FUNCTIONS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "tests/nccl/stock/kernels/layout.h"

namespace railhead::stock {

enum Algorithm : int { kTree, kRing, kCollnetDirect, kCollnetChain, kNvls, kNvlsTree, kPat };
enum Kind : int {
  kNoKind = -1,
  kSendReceive,
  kAllGather,
  kBroadcast,
  kAllGatherV,
  kAllReduce,
  kReduce,
  kReduceScatter
};
// ncclDevRedOp_t.
enum Operator : int { kSum, kProduct, kMinMax, kPreMultipliedSum, kDividedSum, kOperators };
enum Type : int { kI8, kU8, kI32, kU32, kI64, kU64, kF16, kF32, kF64, kBf16, kF8E4, kF8E5, kTypes };

struct Function {
  Kind kind = kNoKind;
  Operator op = kSum;
  Type type = kI8;  // kI8 also for kinds that only move data
  Algorithm algorithm = kRing;
  Protocol protocol = kSimple;
};

size_t BytesOf(Type type);

// "all-reduce tree LL128".
std::string NameOf(const Function& function);

// Logs the first use of each kind, algorithm and protocol in this process.
void LogFirstUse(const Function& function);

// Inverts the library's table ncclDevFuncRowToId.
std::vector<Function> FunctionsOf(const Version& version, const int* numbers);

}  // namespace railhead::stock

#endif  // RAILHEAD_TESTS_NCCL_STOCK_KERNELS_FUNCTIONS_H_
