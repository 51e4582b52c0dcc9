// SPDX-License-Identifier: Apache-2.0
//
// Collectives over a ring: each rank receives from the previous one and sends to the next one.
#include <algorithm>

#include "tests/nccl/stock/cuda/api.h"
#include "tests/nccl/stock/kernels/work.h"

namespace railhead::stock {
namespace {

struct RingWork {
  const Block& block;
  const Part& part;
  Primitives& ring;
  size_t ranks;

  // The rank `after` places behind this one in the ring.
  size_t Rank(size_t after) const {
    return static_cast<size_t>(block.channel.ring.ranks[after % ranks]);
  }
};

// Each rank's chunk goes around twice: while it is summed up, and when it is complete.
void AllReduce(const RingWork& work) {
  const Part& part = work.part;
  const size_t n = work.ranks, element = BytesOf(part.function.type);
  const auto index = static_cast<size_t>(work.block.channel.ring.index);
  for (size_t done = 0; done < part.elements; done += n * part.chunk) {
    const size_t rest = part.elements - done;
    size_t chunk = part.chunk;
    if (rest < n * chunk) {
      const size_t unit = 16 / element;
      chunk = ((rest + n - 1) / n + unit - 1) / unit * unit;
    }
    // The step for the chunk of the rank with this index in the ring.
    const auto of = [&](size_t number, bool with_source, bool with_target) {
      const size_t offset = number % n * chunk;
      const size_t begin = part.begin + done + offset;
      return Step{.source = with_source ? part.Sent(begin) : nullptr,
                  .target = with_target ? part.Received(begin) : nullptr,
                  .elements = offset < rest ? std::min(chunk, rest - offset) : 0};
    };
    const auto run = [&](Step step, bool receive, bool send, bool last = false) {
      step.receive = receive;
      step.send = send;
      step.last = last;
      work.ring.Run(step);
    };
    run(of(index + n - 1, true, false), false, true);
    for (size_t j = 2; j < n; ++j) run(of(index + n - j, true, false), true, true);
    run(of(index, true, true), true, true, true);
    for (size_t j = 1; j + 1 < n; ++j) run(of(index + n - j, false, true), true, true);
    run(of(index + 1, false, true), true, false);
  }
}

void AllGather(const RingWork& work, size_t begin, size_t elements) {
  const Part& part = work.part;
  const auto to = [&](size_t after) {
    return part.Received(work.Rank(after) * part.count + begin);
  };
  const char* const own = part.Sent(begin);
  work.ring.Run({.send = true,
                 .source = own,
                 .target = own == to(0) ? nullptr : to(0),
                 .elements = elements});
  for (size_t j = 1; j + 1 < work.ranks; ++j) {
    work.ring.Run(
        {.receive = true, .send = true, .target = to(work.ranks - j), .elements = elements});
  }
  work.ring.Run({.receive = true, .target = to(1), .elements = elements});
}

void ReduceScatter(const RingWork& work, size_t begin, size_t elements) {
  const Part& part = work.part;
  const auto from = [&](size_t after) { return part.Sent(work.Rank(after) * part.count + begin); };
  work.ring.Run({.send = true, .source = from(work.ranks - 1), .elements = elements});
  for (size_t j = 2; j < work.ranks; ++j) {
    work.ring.Run(
        {.receive = true, .send = true, .source = from(work.ranks - j), .elements = elements});
  }
  work.ring.Run({.receive = true,
                 .source = from(0),
                 .target = part.Received(begin),
                 .elements = elements,
                 .last = true});
}

void Broadcast(const RingWork& work, size_t begin, size_t elements) {
  const Part& part = work.part;
  const auto root = static_cast<size_t>(part.work.root);
  char* const target = part.Received(begin);
  if (work.Rank(0) == root) {
    const char* const source = part.Sent(begin);
    work.ring.Run({.send = true,
                   .source = source,
                   .target = source == target ? nullptr : target,
                   .elements = elements});
  } else {
    const bool end = work.Rank(1) == root;
    work.ring.Run({.receive = true, .send = !end, .target = target, .elements = elements});
  }
}

void ReduceToRoot(const RingWork& work, size_t begin, size_t elements) {
  const Part& part = work.part;
  const auto root = static_cast<size_t>(part.work.root);
  const bool first = work.Rank(work.ranks - 1) == root, end = work.Rank(0) == root;
  work.ring.Run({.receive = !first,
                 .send = !end,
                 .source = part.Sent(begin),
                 .target = end ? part.Received(begin) : nullptr,
                 .elements = elements,
                 .last = end});
}

}  // namespace

void RunRing(const Block& block, const Part& part) {
  const Kind kind = part.function.kind;
  const bool sliced = kind == kAllReduce || kind == kAllGather || kind == kReduceScatter;
  const Ring& order = block.channel.ring;
  Primitives ring(block.version, block.communicator, part.function, part.argument,
                  block.channel.peers, {order.previous}, {order.next},
                  {.slices = sliced ? 2U : 1U, .steps_per_slice = sliced ? 2U : 1U});
  const RingWork work = {block, part, ring, static_cast<size_t>(block.communicator.ranks)};
  if (kind == kAllReduce) return AllReduce(work);
  for (size_t done = 0; done < part.elements; done += part.chunk) {
    const size_t begin = part.begin + done, elements = std::min(part.chunk, part.elements - done);
    switch (kind) {
      case kAllGather:
        AllGather(work, begin, elements);
        break;
      case kReduceScatter:
        ReduceScatter(work, begin, elements);
        break;
      case kBroadcast:
        Broadcast(work, begin, elements);
        break;
      case kReduce:
        ReduceToRoot(work, begin, elements);
        break;
      default:
        GiveUp("collective %d is not emulated", kind);
    }
  }
}

}  // namespace railhead::stock
