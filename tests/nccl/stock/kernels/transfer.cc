// SPDX-License-Identifier: Apache-2.0
//
// Sends and receives. A message is divided over channels, and each part into chunks.
#include <algorithm>
#include <cstring>
#include <optional>

#include "tests/nccl/stock/cuda/api.h"
#include "tests/nccl/stock/kernels/work.h"

namespace railhead::stock {
namespace {

constexpr size_t kPartUnit = 4096;

struct Range {
  size_t begin, bytes;
};

int BitReversed(int number, int limit) {
  int reversed = 0;
  for (int bit = 1; bit < limit; bit <<= 1)
    reversed = reversed << 1 | ((number & bit) != 0 ? 1 : 0);
  return reversed;
}

// The channel's part of a message; nullopt: the message has fewer parts.
std::optional<Range> PartOf(const Block& block, const Transfer& work, size_t bytes, int parts) {
  int part = (block.number - work.first_channel) & (work.channels - 1);
  if (block.version.parts_bit_reversed) part = BitReversed(part, work.channels);
  if (part >= parts) return std::nullopt;
  const auto count = static_cast<size_t>(parts);
  const size_t each = ((bytes + count - 1) / count + kPartUnit - 1) / kPartUnit * kPartUnit;
  const size_t begin = std::min(static_cast<size_t>(part) * each, bytes);
  return Range{begin, std::min(begin + each, bytes) - begin};
}

// The size of chunks is a float of 8 bits, 3 of which are the mantissa.
size_t ChunkBytes(uint8_t encoded) {
  const unsigned exponent = encoded >> 3U;
  const unsigned mantissa = (encoded & 7U) | (exponent != 0 ? 8U : 0U);
  return static_cast<size_t>(mantissa) << (exponent != 0 ? exponent - 1 : 0);
}

template <class Run>
void ByChunks(size_t bytes, size_t chunk, Run run) {
  size_t done = 0;
  do {  // an empty message is a chunk, too
    const size_t now = std::min(chunk, bytes - done);
    run(done, now);
    done += now;
  } while (done < bytes);
}

Function FunctionOf(bool ll) { return {kSendReceive, kSum, kI8, kRing, ll ? kLl : kSimple}; }

Slicing SlicingOf(const Block& block) {
  return {.slot_bytes = block.communicator.transfer_chunk_bytes, .connection = 1};
}

}  // namespace

void RunSend(const Block& block, const Transfer& work) {
  const std::optional<Range> range = PartOf(block, work, work.send_bytes, work.send_parts);
  if (!range || work.to < 0) return;
  const char* const from = work.send + range->begin;
  if (work.to == block.communicator.rank) {
    std::memmove(work.receive + range->begin, from, range->bytes);
    return;
  }
  if (work.send_registered != 0) GiveUp("registered buffers are not emulated");
  Primitives sender(block.version, block.communicator, FunctionOf(work.send_ll != 0), 0,
                    block.channel.peers, {}, {work.to}, SlicingOf(block));
  ByChunks(range->bytes, ChunkBytes(work.send_chunk), [&](size_t done, size_t bytes) {
    sender.Run({.send = true, .source = from + done, .elements = bytes});
  });
}

void RunReceive(const Block& block, const Transfer& work) {
  const std::optional<Range> range = PartOf(block, work, work.receive_bytes, work.receive_parts);
  if (!range || work.from < 0 || work.from == block.communicator.rank) return;
  if (work.receive_registered != 0) GiveUp("registered buffers are not emulated");
  Primitives receiver(block.version, block.communicator, FunctionOf(work.receive_ll != 0), 0,
                      block.channel.peers, {work.from}, {}, SlicingOf(block));
  ByChunks(range->bytes, ChunkBytes(work.receive_chunk), [&](size_t done, size_t bytes) {
    receiver.Run(
        {.receive = true, .target = work.receive + range->begin + done, .elements = bytes});
  });
}

}  // namespace railhead::stock
