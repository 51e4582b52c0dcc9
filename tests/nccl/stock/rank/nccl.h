// SPDX-License-Identifier: Apache-2.0
//
// The functions of libnccl.so.2 that the test calls: own declarations, from NCCL's documentation.
#ifndef RAILHEAD_TESTS_NCCL_STOCK_RANK_NCCL_H_
#define RAILHEAD_TESTS_NCCL_STOCK_RANK_NCCL_H_

#include <cstddef>
#include <string>

namespace railhead::stock {

struct UniqueId {
  char bytes[128];
};
using CommHandle = void*;
using StreamHandle = void*;

// Numbers of ncclRedOp_t and ncclResult_t.
enum NcclOp : int { kNcclSum, kNcclProd, kNcclMax, kNcclMin, kNcclAvg };
inline constexpr int kInProgress = 7;

struct Nccl {
  int (*GetUniqueId)(UniqueId*);
  int (*CommInitRank)(CommHandle*, int ranks, UniqueId, int rank);
  int (*CommFinalize)(CommHandle);  // null: the library has none
  int (*CommDestroy)(CommHandle);
  int (*CommAbort)(CommHandle);
  int (*CommGetAsyncError)(CommHandle, int*);
  const char* (*GetLastError)(CommHandle);
  int (*GroupStart)();
  int (*GroupEnd)();
  int (*AllReduce)(const void*, void*, size_t, int type, int op, CommHandle, StreamHandle);
  int (*AllGather)(const void*, void*, size_t, int type, CommHandle, StreamHandle);
  int (*ReduceScatter)(const void*, void*, size_t, int type, int op, CommHandle, StreamHandle);
  int (*Broadcast)(const void*, void*, size_t, int type, int root, CommHandle, StreamHandle);
  int (*Reduce)(const void*, void*, size_t, int type, int op, int root, CommHandle, StreamHandle);
  int (*Send)(const void*, size_t, int type, int peer, CommHandle, StreamHandle);
  int (*Recv)(void*, size_t, int type, int peer, CommHandle, StreamHandle);
};

// Loads the library, with its CUDA runtime redirected. Ends the process if a function is missing.
Nccl OpenNccl(const std::string& path);

}  // namespace railhead::stock

#endif  // RAILHEAD_TESTS_NCCL_STOCK_RANK_NCCL_H_
