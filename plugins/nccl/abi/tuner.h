// SPDX-License-Identifier: Apache-2.0
//
// NCCL's tuner plugin interface, versions 2 to 6: own declarations of the tables that NCCL looks up
// by name (`ncclTunerPlugin_v6`), written from the published layouts. Their sizes and offsets are
// asserted in layout_test.cc.
//
// NCCL calls init once for each communicator, and get_collective_info for each collective, on the
// thread that enqueues it. Each rank chooses alone, by the cheapest entry of its cost table: NCCL
// does not compare the choices of ranks, so a tuner must answer alike on all of them.
#ifndef RAILHEAD_PLUGINS_NCCL_ABI_TUNER_H_
#define RAILHEAD_PLUGINS_NCCL_ABI_TUNER_H_

#include <cstddef>
#include <cstdint>

#include "plugins/nccl/abi/net.h"

namespace railhead::nccl::abi {

// ncclFunc_t.
enum Collective : int { kBroadcast, kReduce, kAllGather, kReduceScatter, kAllReduce };

// Rows of the cost table.
enum Algorithm : int {
  kTree,
  kRing,
  kCollNetDirect,
  kCollNetChain,
  kNvls,
  kNvlsTree,
  kPat,
};

// Columns of the cost table.
enum Protocol : int { kLl, kLl128, kSimple };
inline constexpr int kProtocols = 3;

// `costs`, which NCCL declares as float**, are `algorithms` rows of `protocols` times in
// microseconds; negative: excluded. `bytes` are those of the larger of the two buffers.
// `channels`: 0 leaves their number to NCCL.
struct TunerV2 {
  const char* name;
  Result (*init)(size_t ranks, size_t nodes, LogFunction log, void** context);
  Result (*get_collective_info)(void* context, int collective, size_t bytes, int collnet, int nvls,
                                int operations, int* algorithm, int* protocol, int* channels);
  Result (*destroy)(void* context);
};

struct TunerV3 {
  const char* name;
  Result (*init)(size_t ranks, size_t nodes, LogFunction log, void** context);
  Result (*get_collective_info)(void* context, int collective, size_t bytes, int operations,
                                float** costs, int algorithms, int protocols, int* channels);
  Result (*destroy)(void* context);
};

struct TunerV4 {
  const char* name;
  Result (*init)(size_t ranks, size_t nodes, LogFunction log, void** context);
  Result (*get_collective_info)(void* context, int collective, size_t bytes, int operations,
                                float** costs, int algorithms, int protocols, int registered,
                                int* channels);
  Result (*destroy)(void* context);
};

// `nvlink_domains` and `constants` are structures of NCCL, which a tuner may ignore.
struct TunerV5 {
  const char* name;
  Result (*init)(void** context, uint64_t comm_id, size_t ranks, size_t nodes, LogFunction log,
                 void* nvlink_domains, void* constants);
  Result (*get_collective_info)(void* context, int collective, size_t bytes, int operations,
                                float** costs, int algorithms, int protocols, int registered,
                                int* channels);
  Result (*finalize)(void* context);
};

struct TunerV6 {
  const char* name;
  Result (*init)(void** context, uint64_t comm_id, size_t ranks, size_t nodes, LogFunction log,
                 void* nvlink_domains, void* constants);
  Result (*get_collective_info)(void* context, int collective, size_t bytes, int operations,
                                float** costs, int algorithms, int protocols, int registered,
                                int* channels);
  Result (*finalize)(void* context);
  // May be null.
  Result (*get_chunk_size)(void* context, int collective, size_t bytes, int algorithm, int protocol,
                           int channels, size_t* chunk_bytes);
};

}  // namespace railhead::nccl::abi

#endif  // RAILHEAD_PLUGINS_NCCL_ABI_TUNER_H_
