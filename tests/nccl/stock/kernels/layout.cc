// SPDX-License-Identifier: Apache-2.0
#include "tests/nccl/stock/kernels/layout.h"

#include <cstring>

#include "tests/nccl/stock/cuda/api.h"

namespace railhead::stock {
namespace {

constexpr Version kVersions[] = {
    // number, consumed_in_memory, ring_has_inverse, collective_bytes, fifo_bytes, function_bits,
    // parts_bit_reversed, gathers_of_any_size
    {22605, true, false, 96, 24, 15, true, false},
    {22809, false, false, 96, 24, 15, false, false},
    {23007, false, true, 128, 24, 15, false, true},
    {23203, false, true, 96, 32, 11, false, true},
};

// ncclKernelComm.
struct CommunicatorFields {
  int rank, ranks, node, nodes, buffer_bytes[kProtocols], transfer_chunk_bytes;
};
struct CommunicatorPointers {
  int* collnet;
  volatile uint32_t* abort;
  const char* channels;
};
struct CommunicatorWithoutCounters {
  CommunicatorFields fields;
  int all_nvlink[2];
  CommunicatorPointers pointers;
};
struct CommunicatorWithCounters {
  CommunicatorFields fields;
  int all_nvlink;
  uint32_t* consumed;
  CommunicatorPointers pointers;
};

// ncclDevChannel.
struct RingWithoutInverse {
  int previous, next;
  const int* ranks;
  int index;
};
struct RingWithInverse {
  int previous, next;
  const int *ranks, *inverse;
  int index;
};
template <class RawRing>
struct alignas(16) RawChannel {
  Peer** peers;
  RawRing ring;
  Tree tree, collnet_chain;
  struct {
    int depth, out, heads, head, shift, of_head[8], up[7], down[7];
  } collnet_direct;
  struct {
    int out, heads, head, up[32], down, tree_up, tree_down[3];
  } nvls;
  uint32_t* fifo_done;
  uint64_t works;
};

// ncclDevWorkColl: 96 bytes, or 128 with gaps.
struct CollectiveFlags {
  uint32_t first_channel : 8, last_channel : 8, warps : 8;
  uint32_t argument_is_pointer : 1, registered : 1, registered_for_network : 1, one_node : 1;
  uint32_t direct : 2, one_rank_per_node : 1, profiled : 1;
  uint32_t root;
};
struct CollectiveShares {
  size_t first, middle, last;
  uint64_t first_grains : 21, middle_grains : 21, last_grains : 21;
};
struct alignas(16) Collective96 {
  CollectiveFlags flags;
  char *receive, *send;
  uintptr_t offsets[2], remote[2];
  CollectiveShares shares;
  uint64_t argument;
};
static_assert(sizeof(Collective96) == 96);
struct alignas(16) Collective128 {
  CollectiveFlags flags;
  char gap[16];
  char *receive, *send;
  uint64_t gap_too;
  uintptr_t offsets[2], remote[2];
  CollectiveShares shares;
  uint64_t argument;
};
static_assert(sizeof(Collective128) == 128);

template <class Raw>
Raw Copy(const void* from) {
  Raw raw;
  std::memcpy(&raw, from, sizeof raw);
  return raw;
}

template <class Raw>
Communicator Common(const Raw& raw, uint32_t* consumed) {
  Communicator read = {.rank = raw.fields.rank,
                       .ranks = raw.fields.ranks,
                       .buffer_bytes = {},
                       .transfer_chunk_bytes = raw.fields.transfer_chunk_bytes,
                       .abort = raw.pointers.abort,
                       .channels = raw.pointers.channels,
                       .consumed = consumed};
  std::memcpy(read.buffer_bytes, raw.fields.buffer_bytes, sizeof read.buffer_bytes);
  return read;
}

template <class RawRing>
Channel Common(const char* channels, int channel) {
  using Raw = RawChannel<RawRing>;
  const auto raw = Copy<Raw>(channels + static_cast<size_t>(channel) * sizeof(Raw));
  return {.peers = raw.peers,
          .ring = {raw.ring.previous, raw.ring.next, raw.ring.ranks, raw.ring.index},
          .tree = raw.tree};
}

template <class Raw>
Collective Common(const char* from) {
  const auto raw = Copy<Raw>(from);
  const CollectiveFlags& flags = raw.flags;
  const CollectiveShares& shares = raw.shares;
  return {.first_channel = static_cast<int>(flags.first_channel),
          .last_channel = static_cast<int>(flags.last_channel),
          .root = static_cast<int>(flags.root),
          .send = raw.send,
          .receive = raw.receive,
          .registered = flags.registered != 0 || flags.registered_for_network != 0,
          .first = {shares.first, shares.first_grains},
          .middle = {shares.middle, shares.middle_grains},
          .last = {shares.last, shares.last_grains},
          .argument_is_pointer = flags.argument_is_pointer != 0,
          .argument = raw.argument};
}

// The offset replaces the slot's place if the mode says so.
constexpr int kOffsetMode = 1;

char* EntryOf(const Version& version, const Connection& connection, uint64_t step) {
  return connection.fifo + step % kSlots * version.fifo_bytes;
}

}  // namespace

const Version& VersionOf(int number) {
  for (const Version& version : kVersions) {
    if (version.number == number) return version;
  }
  GiveUp("NCCL %d is not in the table of tests/nccl/stock/kernels/layout.cc", number);
}

Communicator ReadCommunicator(const Version& version, const void* from) {
  if (version.consumed_in_memory) {
    const auto raw = Copy<CommunicatorWithCounters>(from);
    return Common(raw, raw.consumed);
  }
  return Common(Copy<CommunicatorWithoutCounters>(from), nullptr);
}

Channel ReadChannel(const Version& version, const Communicator& communicator, int channel) {
  return version.ring_has_inverse ? Common<RingWithInverse>(communicator.channels, channel)
                                  : Common<RingWithoutInverse>(communicator.channels, channel);
}

Collective ReadCollective(const Version& version, const char* from) {
  return version.collective_bytes == sizeof(Collective128) ? Common<Collective128>(from)
                                                           : Common<Collective96>(from);
}

void SetBytes(const Version& version, const Connection& connection, uint64_t step, size_t bytes) {
  if (connection.fifo == nullptr) return;
  if (version.separate_fifos) {
    reinterpret_cast<volatile int*>(connection.fifo)[step % kSlots] = static_cast<int>(bytes);
    return;
  }
  char* const size = EntryOf(version, connection, step) + version.fifo_bytes - 16;
  *reinterpret_cast<volatile int64_t*>(size) = static_cast<int64_t>(bytes);
}

char* SlotOf(const Version& version, const Connection& connection, uint64_t step) {
  char* const buffer = connection.buffers[kSimple];
  if (version.separate_fifos && connection.device.handle != nullptr) {
    return buffer + static_cast<volatile int*>(connection.device.handle)[step % kSlots];
  }
  if (connection.fifo != nullptr && !version.separate_fifos) {
    char* const entry = EntryOf(version, connection, step);
    if (*reinterpret_cast<volatile int*>(entry) == kOffsetMode) {
      return buffer + (version.fifo_bytes == 32 ? *reinterpret_cast<volatile int64_t*>(entry + 8)
                                                : *reinterpret_cast<volatile int*>(entry + 4));
    }
  }
  return buffer + step % kSlots * static_cast<size_t>(connection.slot_bytes);
}

}  // namespace railhead::stock
