// SPDX-License-Identifier: Apache-2.0
//
// RCCL 5.4 lays out its work as NCCL 2.13 does: it is translated into what the emulated kernels of
// tests/nccl/stock read. Declarations are our own, from RCCL's source.
#include "tests/nccl/rccl/kernel.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <deque>
#include <thread>
#include <utility>
#include <vector>

#include "tests/nccl/stock/cuda/api.h"
#include "tests/nccl/stock/kernels/primitives.h"
#include "tests/nccl/stock/kernels/work.h"

namespace railhead::stock {
namespace {

constexpr size_t kWorkBytes = 256;
constexpr size_t kConnections = 3;  // of a peer, in each direction
constexpr unsigned kTransferFunction = 2710;
constexpr uint8_t kCollectiveType = 1, kTransferType = 2;
// Of chunks of protocol Simple, for collectives whose chunks are sliced.
constexpr size_t kStepsOfChunk = 4;

struct RawConnection {
  char* buffers[kProtocols];
  volatile uint64_t *tail, *head;
  int direct, shared;
  void** exchanged;
  uint64_t* exchanged_argument;
  int *sizes, *offsets;  // of slots: for NCCL's proxy, and from it; null: none
  uint64_t step, last_cleaning;
  uint32_t* flushes[2];
};
static_assert(sizeof(RawConnection) == 112);
struct RawPeer {
  RawConnection send[kConnections], receive[kConnections];
};
struct alignas(16) RawChannel {
  RawPeer* peers;
  Ring ring;
  Tree tree, second_tree;
  int direct[19];
  uint32_t* works_done;
};
static_assert(sizeof(RawChannel) == 160);
struct RawCommunicator {
  int rank, ranks, buffer_bytes[kProtocols], works;
  void* fifo;
  volatile uint32_t* abort;
  RawChannel* channels;
};

struct Header {
  int32_t next;  // of the last work: the number of its acknowledgement
  uint16_t function;
  uint8_t last : 1, in_fifo : 1;
  uint8_t type;
};
static_assert(sizeof(Header) == 8);
struct RawCollective {
  uint8_t used : 1, argument_is_pointer : 1, registered : 1, warps : 5;
  uint8_t direct, block, channels;
  uint32_t root : 28, unused : 2, connection : 2;
  char *send, *receive;
  size_t count, last_chunk;
  uint64_t argument, operation;
};
static_assert(sizeof(RawCollective) == 56);
struct RawTransfer {
  int32_t peer : 30;
  uint32_t connection : 2;
  uint16_t type : 4, warps : 4, first_warp : 4, groups : 4;
  uint16_t operation;
  uint32_t buffer_high, buffer_low, bytes_high, bytes_low;
  int chunk;

  char* buffer() const {
    return reinterpret_cast<char*>(uint64_t{buffer_high} << 32U | buffer_low);
  }
  size_t bytes() const { return uint64_t{bytes_high} << 32U | bytes_low; }
};
static_assert(sizeof(RawTransfer) == 28);

// Two transfers of a work: the receive, and the send.
constexpr size_t kReceive = 0, kSend = 1;

const Version& Rccl() {
  static const Version version = {.number = 21304,
                                  .consumed_in_memory = false,
                                  .ring_has_inverse = false,
                                  .collective_bytes = 0,
                                  .fifo_bytes = 0,
                                  .function_bits = 0,
                                  .parts_bit_reversed = false,
                                  .gathers_of_any_size = false,
                                  .separate_fifos = true};
  return version;
}

// Connections of a channel in NCCL's layout. Their steps go back to RCCL's at the end.
class Peers {
 public:
  Peers(const RawChannel& channel, const Communicator& communicator, size_t receive, size_t send)
      : peers_(static_cast<size_t>(communicator.ranks)) {
    for (size_t rank = 0; rank < peers_.size(); ++rank) {
      RawPeer& raw = channel.peers[rank];
      for (const size_t place : {0, 1}) {
        peers_[rank].receive[place] = Translated(raw.receive[receive], communicator);
        peers_[rank].send[place] = Translated(raw.send[send], communicator);
      }
      returns_.emplace_back(&raw.receive[receive].step, &peers_[rank].receive[0]);
      returns_.emplace_back(&raw.send[send].step, &peers_[rank].send[0]);
      pointers_.push_back(&peers_[rank]);
    }
  }
  ~Peers() {
    for (const auto& [step, connection] : returns_) {
      if (connection->step != *step) *step = connection->step;
    }
  }
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;

  Peer** get() { return pointers_.data(); }

 private:
  static Connection Translated(const RawConnection& raw, const Communicator& communicator) {
    Connection connection = {};
    std::copy(std::begin(raw.buffers), std::end(raw.buffers), std::begin(connection.buffers));
    connection.tail = raw.tail;
    connection.head = raw.head;
    connection.shared = raw.shared;
    connection.slot_bytes = communicator.buffer_bytes[kSimple] / static_cast<int>(kSlots);
    connection.fifo = reinterpret_cast<char*>(raw.sizes);
    connection.device.handle = raw.offsets;
    connection.step = raw.step;
    return connection;
  }

  std::vector<Peer> peers_;
  std::vector<Peer*> pointers_;
  std::vector<std::pair<uint64_t*, const Connection*>> returns_;
};

// Functions are numbered by collective, operation, type, algorithm and protocol.
Function FunctionOf(unsigned number) {
  constexpr Kind kKinds[] = {kBroadcast, kReduce, kAllGather, kReduceScatter, kAllReduce};
  constexpr Operator kOps[] = {kSum, kProduct, kMinMax, kMinMax, kPreMultipliedSum, kDividedSum};
  constexpr unsigned kTypeCount = 10, kAlgorithmCount = 3, kOpCount = 6;
  const unsigned protocol = number % kProtocols, algorithm = number / kProtocols % kAlgorithmCount;
  const unsigned type = number / (kProtocols * kAlgorithmCount) % kTypeCount;
  const unsigned row = number / (kProtocols * kAlgorithmCount * kTypeCount);
  if (row / kOpCount >= std::size(kKinds)) GiveUp("there is no function %u", number);
  return {kKinds[row / kOpCount], kOps[row % kOpCount], static_cast<Type>(type),
          static_cast<Algorithm>(algorithm), static_cast<Protocol>(protocol)};
}

// The argument of the reduction, as later versions have it.
uint64_t ArgumentOf(const Function& function, unsigned number, const RawCollective& work) {
  constexpr unsigned kNumbersOfOp = 90, kOps = 6, kMax = 2;
  const bool is_signed = function.type == kI8 || function.type == kI32 || function.type == kI64;
  if (function.op == kMinMax) {
    const bool max = number / kNumbersOfOp % kOps == kMax;
    if (function.type >= kF16) return max ? 1 : 0;
    const uint64_t sign = is_signed ? uint64_t{1} << (8 * BytesOf(function.type) - 1) : 0;
    return (max ? ~uint64_t{0} : 0) ^ sign;
  }
  uint64_t argument = work.argument;
  if (work.argument_is_pointer != 0) {
    argument = 0;
    std::memcpy(&argument, reinterpret_cast<const void*>(work.argument), BytesOf(function.type));
  }
  if (function.op == kDividedSum) return argument << 1U | (is_signed ? 1U : 0U);
  return argument;
}

// Elements of a chunk of protocol Simple or LL.
size_t ChunkOf(const Communicator& communicator, const Function& function,
               const RawCollective& work) {
  const auto slot = static_cast<size_t>(communicator.buffer_bytes[function.protocol]) / kSlots;
  const size_t bytes = BytesOf(function.type);
  if (function.protocol == kLl) return slot / 2 / bytes;
  if (function.algorithm == kTree) return work.last_chunk;
  const bool sliced = function.kind != kBroadcast && function.kind != kReduce;
  return slot / bytes * (sliced ? kStepsOfChunk : 1);
}

void RunCollective(const Communicator& communicator, const RawChannel& raw, int number,
                   unsigned function_number, const RawCollective& work) {
  const Function function = FunctionOf(function_number);
  if (work.registered != 0 || function.protocol == kLl128) {
    GiveUp("%s of RCCL is not emulated", NameOf(function).c_str());
  }
  LogFirstUse(function);
  if (work.channels != 1) GiveUp("a collective of RCCL over %d channels", work.channels);
  Peers peers(raw, communicator, work.connection, work.connection);
  const Channel channel = {peers.get(), raw.ring, raw.tree};
  const Collective collective = {.first_channel = number,
                                 .last_channel = number,
                                 .root = static_cast<int>(work.root),
                                 .send = work.send,
                                 .receive = work.receive,
                                 .registered = false,
                                 .first = {},
                                 .middle = {},
                                 .last = {},
                                 .argument_is_pointer = false,
                                 .argument = 0};
  const Block block = {Rccl(), communicator, channel, number};
  const Part part = {.function = function,
                     .work = collective,
                     .argument = ArgumentOf(function, function_number, work),
                     .begin = 0,
                     .elements = work.count,
                     .chunk = ChunkOf(communicator, function, work),
                     .count = work.count};
  if (function.algorithm == kTree && function.kind == kAllReduce) return RunTree(block, part);
  if (function.algorithm == kRing) return RunRing(block, part);
  GiveUp("%s of RCCL is not emulated", NameOf(function).c_str());
}

// Runs the transfer in chunks; step() returns what one does.
template <class MakeStep>
void ByChunks(const RawTransfer& work, Primitives& primitives, MakeStep step) {
  size_t done = 0;
  do {  // an empty message is a chunk, too
    const size_t bytes = std::min(static_cast<size_t>(work.chunk), work.bytes() - done);
    primitives.Run(step(work.buffer() + done, bytes));
    done += bytes;
  } while (done < work.bytes());
}

void RunTransfers(const Communicator& communicator, const RawChannel& raw,
                  const RawTransfer* works) {
  const RawTransfer &receive = works[kReceive], &send = works[kSend];
  const Function function = {kSendReceive, kSum, kI8, kRing, kSimple};
  const bool receives = receive.type != 0 && receive.peer >= 0;
  const bool sends = send.type != 0 && send.peer >= 0;
  if (sends && send.peer == communicator.rank) {
    std::memmove(receive.buffer(), send.buffer(), send.bytes());
    return;
  }
  Peers peers(raw, communicator, receive.connection, send.connection);
  std::vector<std::jthread> threads;
  if (receives) {
    threads.emplace_back([&] {
      Primitives receiver(Rccl(), communicator, function, 0, peers.get(), {receive.peer}, {}, {});
      ByChunks(receive, receiver, [](char* to, size_t bytes) {
        return Step{.receive = true, .target = to, .elements = bytes};
      });
    });
  }
  if (sends) {
    threads.emplace_back([&] {
      Primitives sender(Rccl(), communicator, function, 0, peers.get(), {}, {send.peer}, {});
      ByChunks(send, sender, [](const char* from, size_t bytes) {
        return Step{.send = true, .source = from, .elements = bytes};
      });
    });
  }
  threads.clear();  // before the peers' steps go back
}

void RunBlock(const Communicator& communicator, const RawChannel& channel, int number,
              const char* works, size_t first) {
  const char* work = works + first * kWorkBytes;
  while (true) {
    Header header;
    std::memcpy(&header, work, sizeof header);
    char elements[kWorkBytes - sizeof(Header)];
    std::memcpy(elements, work + sizeof header, sizeof elements);
    if (header.last != 0 && header.in_fifo != 0) {
      *const_cast<volatile uint32_t*>(channel.works_done) = static_cast<uint32_t>(header.next);
    }
    if (header.type == kTransferType && header.function == kTransferFunction) {
      RunTransfers(communicator, channel, reinterpret_cast<const RawTransfer*>(elements));
    } else if (header.type == kCollectiveType) {
      RunCollective(communicator, channel, number, header.function,
                    *reinterpret_cast<const RawCollective*>(elements));
    } else {
      GiveUp("work of type %u of RCCL is not emulated", header.type);
    }
    if (header.last != 0 || *communicator.abort != 0) return;
    work = works + static_cast<ptrdiff_t>(header.next) * static_cast<ptrdiff_t>(kWorkBytes);
  }
}

}  // namespace

void RunRcclKernel(const KernelArguments& arguments) {
  const auto& raw = *reinterpret_cast<const RawCommunicator*>(arguments.communicator);
  Communicator communicator = {};
  communicator.rank = raw.rank;
  communicator.ranks = raw.ranks;
  std::copy(std::begin(raw.buffer_bytes), std::end(raw.buffer_bytes),
            std::begin(communicator.buffer_bytes));
  communicator.abort = raw.abort;
  std::vector<std::jthread> blocks;
  for (int number = 0; number < kChannels; ++number) {
    if ((arguments.channels >> static_cast<unsigned>(number) & 1U) == 0) continue;
    blocks.emplace_back([&, number, first = blocks.size()] {
      RunBlock(communicator, raw.channels[number], number, arguments.works, first);
    });
  }
}

}  // namespace railhead::stock
