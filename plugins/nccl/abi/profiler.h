// SPDX-License-Identifier: Apache-2.0
//
// NCCL's profiler plugin interface, versions 1 to 7: own declarations of the tables that NCCL looks
// up by name (`ncclProfiler_v6`), written from the published layouts. Their sizes and offsets are
// asserted in profiler_layout_test.cc. Names follow NCCL's, so that its documentation applies.
//
// start writes an event's handle; NCCL passes it as parent of other events, also after stop. A
// transfer (kProxyOp) may come from another process of the node: its parent and its context are
// then pointers of that process. Times of kernels are in ns of the GPU's clock.
#ifndef RAILHEAD_PLUGINS_NCCL_ABI_PROFILER_H_
#define RAILHEAD_PLUGINS_NCCL_ABI_PROFILER_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "plugins/nccl/abi/net.h"

namespace railhead::nccl::abi {

// Types of events, and bits of the mask of those that a profiler wants.
enum EventType : uint64_t {
  kGroup = 1 << 0,
  kCollective = 1 << 1,
  kP2p = 1 << 2,
  kProxyOp = 1 << 3,
  kProxyStep = 1 << 4,
  kProxyControl = 1 << 5,
  kKernelChannel = 1 << 6,
  kNetPlugin = 1 << 7,
  kGroupApi = 1 << 8,
  kCollectiveApi = 1 << 9,
  kP2pApi = 1 << 10,
  kKernelLaunch = 1 << 11,
  kCopyCollective = 1 << 12,
  kCopySync = 1 << 13,
  kCopyBatch = 1 << 14,
};

// States of steps and kernels.
enum EventState : int {
  kSendGpuWait = 8,
  kSendWait = 9,
  kRecvWait = 10,
  kRecvFlushWait = 11,
  kRecvGpuWait = 12,
  kSendPeerWait = 20,  // from version 4 on
  kKernelStop = 22,
};

struct CollectiveV1 {
  const char* name;  // of the communicator
  uint64_t comm_hash;
  uint64_t sequence;
  uint8_t function;
  const void* send_buffer;
  void* receive_buffer;
  size_t count;
  int root;
  uint8_t data_type;
  uint32_t operation;
  size_t traffic_bytes;
  uint8_t max_channels;
  uint8_t warps;
  uint8_t algorithm;
  uint8_t protocol;
  int is_coll_net;
  int is_nvls;
};

struct P2pV1 {
  const char* name;
  uint64_t comm_hash;
  uint8_t function;
  void* buffer;
  uint8_t data_type;
  size_t count;
  int peer;
};

struct ProxyOp {
  pid_t pid;
  uint8_t channel;
  int peer;
  int steps;
  int chunk_bytes;
  int is_send;
};

struct ProxyStep {
  int step;
};

struct CollectiveV2 {
  const char* name;
  uint64_t comm_hash;
  uint64_t sequence;
  const char* function;
  const void* send_buffer;
  void* receive_buffer;
  size_t count;
  int root;
  const char* data_type;
  size_t traffic_bytes;
  uint8_t max_channels;
  uint8_t warps;
  const char* algorithm;
  const char* protocol;
};

// Versions 2 and 3.
struct P2pV2 {
  const char* name;
  uint64_t comm_hash;
  const char* function;
  void* buffer;
  const char* data_type;
  size_t count;
  int peer;
};

struct CollectiveV3 {
  const char* name;
  uint64_t comm_hash;
  uint64_t sequence;
  const char* function;
  const void* send_buffer;
  void* receive_buffer;
  size_t count;
  int root;
  const char* data_type;
  uint8_t max_channels;
  uint8_t warps;
  const char* algorithm;
  const char* protocol;
};

struct KernelChannelV3 {
  uint8_t channel;
};

struct NetPlugin {
  int64_t id;
  void* data;
};

struct CollectiveV4 {
  uint64_t sequence;
  const char* function;
  const void* send_buffer;
  void* receive_buffer;
  size_t count;
  int root;
  const char* data_type;
  uint8_t channels;
  uint8_t warps;
  const char* algorithm;
  const char* protocol;
};

struct P2pV4 {
  const char* function;
  void* buffer;
  const char* data_type;
  size_t count;
  int peer;
  uint8_t channels;
};

struct KernelChannel {
  uint8_t channel;
  uint64_t time;
};

struct GroupApi {
  bool graph_captured;
  int depth;
};

struct CollectiveApiV5 {
  const char* function;
  size_t count;
  const char* data_type;
  int root;
  void* stream;
  bool graph_captured;
};

struct P2pApiV5 {
  const char* function;
  size_t count;
  const char* data_type;
  void* stream;
  bool graph_captured;
};

struct KernelLaunch {
  void* stream;
};

// Versions 5 and 6.
struct CollectiveV5 {
  uint64_t sequence;
  const char* function;
  const void* send_buffer;
  void* receive_buffer;
  size_t count;
  int root;
  const char* data_type;
  uint8_t channels;
  uint8_t warps;
  const char* algorithm;
  const char* protocol;
  void* parent_group;
};

// Versions 5 and 6.
struct P2pV5 {
  const char* function;
  void* buffer;
  const char* data_type;
  size_t count;
  int peer;
  uint8_t channels;
  void* parent_group;
};

struct CopyCollectiveV6 {
  uint64_t sequence;
  const char* function;
  const void* send_buffer;
  void* receive_buffer;
  size_t count;
  int root;
  const char* data_type;
  const char* sync_strategy;
  bool syncs_in_batch;
  uint32_t batch_size;
  uint32_t batches;
  uint32_t copy_sequence;
  void* stream;
};

struct CopySync {
  bool is_complete;
  int ranks;
};

struct CopyBatch {
  int operations;
  size_t bytes;
  bool syncs_in_batch;
};

struct CollectiveApiV7 {
  const char* function;
  size_t count;
  const char* data_type;
  int root;
  void* stream;
  bool graph_captured;
  uint64_t user_tag;
};

struct P2pApiV7 {
  const char* function;
  size_t count;
  const char* data_type;
  void* stream;
  bool graph_captured;
  uint64_t user_tag;
};

struct CollectiveV7 {
  uint64_t sequence;
  const char* function;
  const void* send_buffer;
  void* receive_buffer;
  size_t count;
  int root;
  const char* data_type;
  uint8_t channels;
  uint8_t warps;
  const char* algorithm;
  const char* protocol;
  void* parent_group;
  const char* kernel_variant;
  bool is_symmetric;
  uint64_t user_tag;
};

struct P2pV7 {
  const char* function;
  void* buffer;
  const char* data_type;
  size_t count;
  int peer;
  uint8_t channels;
  void* parent_group;
  uint64_t user_tag;
};

struct CopyCollectiveV7 {
  uint64_t sequence;
  const char* function;
  const void* send_buffer;
  void* receive_buffer;
  size_t count;
  int root;
  const char* data_type;
  const char* sync_strategy;
  bool syncs_in_batch;
  uint32_t batch_size;
  uint32_t batches;
  uint32_t copy_sequence;
  void* stream;
  uint64_t user_tag;
};

struct KernelPhase {
  uint8_t channel;
  uint8_t phase;
  const char* phase_name;
  uint64_t time;
};

// An event that starts; `type` says which member is set.
struct EventV1 {
  uint8_t type;
  void* parent;
  int rank;
  union {
    CollectiveV1 collective;
    P2pV1 p2p;
    ProxyOp proxy_op;
    ProxyStep proxy_step;
  };
};

struct EventV2 {
  uint8_t type;
  void* parent;
  int rank;
  union {
    CollectiveV2 collective;
    P2pV2 p2p;
    ProxyOp proxy_op;
    ProxyStep proxy_step;
  };
};

struct EventV3 {
  uint8_t type;
  void* parent;
  int rank;
  union {
    CollectiveV3 collective;
    P2pV2 p2p;
    ProxyOp proxy_op;
    ProxyStep proxy_step;
    KernelChannelV3 kernel;
    NetPlugin net;
  };
};

struct EventV4 {
  uint8_t type;
  void* parent;
  int rank;
  union {
    CollectiveV4 collective;
    P2pV4 p2p;
    ProxyOp proxy_op;
    ProxyStep proxy_step;
    KernelChannel kernel;
    NetPlugin net;
  };
};

struct EventV5 {
  uint64_t type;
  void* parent;
  int rank;
  union {
    GroupApi group_api;
    CollectiveApiV5 collective_api;
    P2pApiV5 p2p_api;
    KernelLaunch launch;
    CollectiveV5 collective;
    P2pV5 p2p;
    ProxyOp proxy_op;
    ProxyStep proxy_step;
    KernelChannel kernel;
    NetPlugin net;
  };
};

struct EventV6 {
  uint64_t type;
  void* parent;
  int rank;
  union {
    GroupApi group_api;
    CollectiveApiV5 collective_api;
    P2pApiV5 p2p_api;
    KernelLaunch launch;
    CollectiveV5 collective;
    P2pV5 p2p;
    ProxyOp proxy_op;
    ProxyStep proxy_step;
    KernelChannel kernel;
    NetPlugin net;
    CopyCollectiveV6 copy_collective;
    CopySync copy_sync;
    CopyBatch copy_batch;
  };
};

struct EventV7 {
  uint64_t type;
  void* parent;
  int rank;
  union {
    GroupApi group_api;
    CollectiveApiV7 collective_api;
    P2pApiV7 p2p_api;
    KernelLaunch launch;
    CollectiveV7 collective;
    P2pV7 p2p;
    ProxyOp proxy_op;
    ProxyStep proxy_step;
    KernelChannel kernel;
    NetPlugin net;
    CopyCollectiveV7 copy_collective;
    CopySync copy_sync;
    CopyBatch copy_batch;
    KernelPhase kernel_phase;
  };
};

// Arguments of a state; versions 1 to 3.
union StateV1 {
  struct {
    size_t bytes;
    int steps;
  } proxy_op;
  struct {
    int appended;
  } proxy_control;
};

// Versions 4 to 7.
union StateV4 {
  struct {
    size_t bytes;
  } proxy_step;
  struct {
    int appended;
  } proxy_control;
  struct {
    void* data;
  } net;
  struct {
    uint64_t time;
  } kernel;
};

// Versions 1 to 3.
template <class AnyEvent, class AnyState>
struct ProfilerV1 {
  using Event = AnyEvent;
  using State = AnyState;
  const char* name;
  Result (*init)(void** context, int* mask);
  Result (*start)(void* context, void** handle, Event* event);
  Result (*stop)(void* handle);
  Result (*record)(void* handle, int state, State* arguments);
  Result (*finalize)(void* context);
};
using ProfilerV1Table = ProfilerV1<EventV1, StateV1>;
using ProfilerV2Table = ProfilerV1<EventV2, StateV1>;
using ProfilerV3Table = ProfilerV1<EventV3, StateV1>;

struct ProfilerV4Table {
  using Event = EventV4;
  using State = StateV4;
  const char* name;
  Result (*init)(void** context, int* mask, const char* comm_name, uint64_t comm_id, int nodes,
                 int ranks, int rank, LogFunction log);
  Result (*start)(void* context, void** handle, Event* event);
  Result (*stop)(void* handle);
  Result (*record)(void* handle, int state, State* arguments);
  Result (*finalize)(void* context);
};

// Versions 5 to 7.
template <class AnyEvent>
struct ProfilerV5 {
  using Event = AnyEvent;
  using State = StateV4;
  const char* name;
  Result (*init)(void** context, uint64_t comm_id, int* mask, const char* comm_name, int nodes,
                 int ranks, int rank, LogFunction log);
  Result (*start)(void* context, void** handle, Event* event);
  Result (*stop)(void* handle);
  Result (*record)(void* handle, int state, State* arguments);
  Result (*finalize)(void* context);
};
using ProfilerV5Table = ProfilerV5<EventV5>;
using ProfilerV6Table = ProfilerV5<EventV6>;
using ProfilerV7Table = ProfilerV5<EventV7>;

}  // namespace railhead::nccl::abi

#endif  // RAILHEAD_PLUGINS_NCCL_ABI_PROFILER_H_
