// SPDX-License-Identifier: Apache-2.0
//
// What NCCL's host code lays out in memory for its kernels, as values that do not depend on the
// version. Declarations are our own, from the types in the debug information of NVIDIA's wheels
// (README.md). A version of NCCL is a row of kVersions in layout.cc.
//
// Both ends of each connection are emulated. So only what the host code reads or writes must be as
// in NCCL: flags, counters, sizes and offsets.
#ifndef RAILHEAD_TESTS_NCCL_STOCK_KERNELS_LAYOUT_H_
#define RAILHEAD_TESTS_NCCL_STOCK_KERNELS_LAYOUT_H_

#include <cstddef>
#include <cstdint>

namespace railhead::stock {

// Slots of a connection's buffer, used in turn: a slot is a step.
inline constexpr uint64_t kSlots = 8;
inline constexpr int kChannels = 64;

enum Protocol : int { kLl, kLl128, kSimple, kProtocols };

// ncclConnInfo: one direction of a connection to a peer, of one channel.
struct Connection {
  char* buffers[kProtocols];
  void* memory_handles[kProtocols];
  volatile uint64_t* tail;  // steps that were sent
  volatile uint64_t* head;  // steps that were consumed
  int flags, shared, slot_bytes;
  void** exchanged;
  uint64_t* exchanged_argument;
  char* fifo;  // an entry per slot, shared with NCCL's proxy; null: no proxy
  uint64_t step, last_cleaning;
  struct {
    int type, version;
    void* handle;
    size_t size;
    int needs_proxy;
  } device;
};

// ncclDevChannelPeer. Transfers use the second connection, collectives the first.
struct Peer {
  Connection send[2], receive[2];
};

struct Ring {
  int previous, next;
  const int* ranks;  // in the order of the ring, from this rank on
  int index;         // of this rank in the ring
};

// -1: none.
struct Tree {
  int depth, up, down[3];
};

struct Channel {
  Peer** peers;
  Ring ring;
  Tree tree;
};

struct Communicator {
  int rank, ranks;
  int buffer_bytes[kProtocols];
  int transfer_chunk_bytes;
  volatile uint32_t* abort;
  const char* channels;
  uint32_t* consumed;  // 2.26: where kernels report consumed work, per channel; else null
};

// Work of a collective for all of its channels.
struct Collective {
  int first_channel, last_channel;
  int root;
  char *send, *receive;
  bool registered;
  // Elements of the first, each middle and the last channel; and their chunks, in grains.
  struct Share {
    size_t elements, grains;
  } first, middle, last;
  bool argument_is_pointer;
  uint64_t argument;  // of the reduction
};

// Work of a send and a receive (ncclDevWorkP2p).
struct alignas(16) Transfer {
  char *send, *receive;
  size_t send_bytes, receive_bytes;
  int to, from;
  uint8_t channels, first_channel, send_parts, receive_parts, send_chunk, receive_chunk;
  uint8_t send_ll : 1, receive_ll : 1, send_registered : 1, receive_registered : 1;
};
static_assert(sizeof(Transfer) == 48);

// Several works of one type and function for one channel (ncclDevWorkBatch).
struct alignas(16) Batch {
  uint32_t next : 14;    // batches to the next one of this channel; 0: the last one
  uint32_t extends : 1;  // the next one continues this one
  uint32_t type : 2;
  uint32_t function : 15;
  uint32_t offset;
  uint64_t works;  // bits: which of the 64 places after the offset
};
static_assert(sizeof(Batch) == 16);
enum WorkType : unsigned { kTransferWork, kCollectiveWork };

// A kernel's arguments, before the batches (ncclDevKernelArgs).
struct alignas(16) Arguments {
  const void* communicator;
  uint64_t channels;  // bits
  uint8_t storage;    // of works; 0: behind the arguments, 1: a ring buffer, 2: a buffer
  uint32_t mask;      // of offsets in the buffer
  const char* works;
};
static_assert(sizeof(Arguments) == 32);
inline constexpr uint8_t kBehindArguments = 0, kRingBuffer = 1;

// Properties in which versions differ.
struct Version {
  int number;                // as ncclGetVersion returns it
  bool consumed_in_memory;   // the communicator has a pointer to counters of consumed work
  bool ring_has_inverse;     // the ring has a table from ranks to indices
  size_t collective_bytes;   // of a collective's work
  size_t fifo_bytes;         // of an entry: 24, or 32 with an offset of 64 bits
  int function_bits;         // of a function's number in a batch
  bool parts_bit_reversed;   // order of a transfer's parts over channels
  bool gathers_of_any_size;  // AllGatherV is in the table of functions
  // RCCL: a connection's fifo has sizes only, as int; device.handle has int offsets, or is null.
  bool separate_fifos = false;
};

// Returns the row of a version. Ends the process if there is none.
const Version& VersionOf(int number);

Communicator ReadCommunicator(const Version& version, const void* from);
Channel ReadChannel(const Version& version, const Communicator& communicator, int channel);
Collective ReadCollective(const Version& version, const char* from);

// Tells NCCL's proxy how many bytes the slot of a step has.
void SetBytes(const Version& version, const Connection& connection, uint64_t step, size_t bytes);
// Returns where the data of a step is, of protocol Simple.
char* SlotOf(const Version& version, const Connection& connection, uint64_t step);

}  // namespace railhead::stock

#endif  // RAILHEAD_TESTS_NCCL_STOCK_KERNELS_LAYOUT_H_
