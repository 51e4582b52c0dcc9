// SPDX-License-Identifier: Apache-2.0
#include "runtime/perf/collectives.h"

#include <array>

namespace railhead::perf {
namespace {

// Minimum amount that a rank must move, in relation to the size; so busbw can be compared with the
// speed of the rails.
double Whole(int /*ranks*/) { return 1; }
double OfOthers(int ranks) { return static_cast<double>(ranks - 1) / ranks; }
double TwiceOfOthers(int ranks) { return 2 * OfOthers(ranks); }

constexpr Movement kExchange = {Shape::kPerRank, Shape::kPerRank, Source::kEach};
constexpr Movement kCollect = {Shape::kOne, Shape::kPerRank, Source::kEach};
constexpr Movement kReduceApart = {Shape::kPerRank, Shape::kOne, Source::kReduced};

constexpr Movement Uneven(Movement movement) {
  movement.uneven = true;
  return movement;
}

constexpr Movement ToRoot(Movement movement) {
  movement.to_root_only = true;
  return movement;
}

rhResult_t SendReceive(const Call& c) {
  rhResult_t result = rhGroupStart();
  if (result != rhSuccess) return result;
  result = rhSend(c.send, c.count, c.type, (c.rank + 1) % c.ranks, c.comm, nullptr);
  const int previous = (c.rank + c.ranks - 1) % c.ranks;
  const rhResult_t received = rhRecv(c.receive, c.count, c.type, previous, c.comm, nullptr);
  // Ends the group even if a call in it failed.
  const rhResult_t ended = rhGroupEnd();
  for (const rhResult_t each : {received, ended}) {
    if (result == rhSuccess) result = each;
  }
  return result;
}

constexpr const char* kDividedSize =
    "size: all ranks' parts together; count: values in one rank's part. busbw = algbw * (n-1)/n.";
constexpr const char* kUnevenSize =
    "size: all ranks' parts together; count: mean number of values in a part. Each even rank "
    "gives half of its part to the next one, so parts have a ratio of 1 to 3. busbw = algbw * "
    "(n-1)/n.";

constexpr std::array<Collective, 13> kCollectives = {{
    {"all_reduce",
     "Reduce values over all ranks, result on all ranks",
     "size: each rank's input, and its result; count: values in it. busbw = algbw * 2(n-1)/n.",
     {Shape::kOne, Shape::kOne, Source::kReduced},
     true,
     false,
     TwiceOfOthers,
     [](const Call& c) {
       return rhAllReduce(c.send, c.receive, c.count, c.type, c.op, c.comm, nullptr);
     }},
    {"all_gather", "Gather all ranks' parts on all ranks", kDividedSize, kCollect, true, false,
     OfOthers,
     [](const Call& c) {
       return rhAllGather(c.send, c.receive, c.count, c.type, c.comm, nullptr);
     }},
    {"all_gatherv", "Gather all ranks' parts, of different sizes, on all ranks", kUnevenSize,
     Uneven(kCollect), true, false, OfOthers,
     [](const Call& c) {
       return rhAllGatherv(c.send, c.receive, c.parts.counts.data(), c.parts.begins.data(), c.type,
                           c.comm, nullptr);
     }},
    {"reduce_scatter", "Reduce values over all ranks, one part of the result on each", kDividedSize,
     kReduceApart, true, false, OfOthers,
     [](const Call& c) {
       return rhReduceScatter(c.send, c.receive, c.count, c.type, c.op, c.comm, nullptr);
     }},
    {"reduce_scatterv", "Reduce values over all ranks, parts of different sizes", kUnevenSize,
     Uneven(kReduceApart), true, false, OfOthers,
     [](const Call& c) {
       return rhReduceScatterv(c.send, c.receive, c.parts.counts.data(), c.type, c.op, c.comm,
                               nullptr);
     }},
    {"broadcast",
     "Copy the root's values to all ranks",
     "size: the root's input, and each rank's result; count: values in it. busbw = algbw.",
     {Shape::kOne, Shape::kOne, Source::kRoot},
     true,
     true,
     Whole,
     [](const Call& c) {
       return rhBroadcast(c.send, c.receive, c.count, c.type, c.root, c.comm, nullptr);
     }},
    {"reduce", "Reduce values over all ranks, result on the root",
     "size: each rank's input, and the root's result; count: values in it. busbw = algbw.",
     ToRoot({Shape::kOne, Shape::kOne, Source::kReduced}), true, true, Whole,
     [](const Call& c) {
       return rhReduce(c.send, c.receive, c.count, c.type, c.op, c.root, c.comm, nullptr);
     }},
    {"alltoall", "Send a different part to each rank", kDividedSize, kExchange, true, false,
     OfOthers,
     [](const Call& c) { return rhAlltoAll(c.send, c.receive, c.count, c.type, c.comm, nullptr); }},
    {"alltoallv", "Send a different part to each rank, of different sizes", kUnevenSize,
     Uneven(kExchange), false, false, OfOthers,
     [](const Call& c) {
       const Parts& p = c.parts;
       return rhAlltoAllv(c.send, p.counts.data(), p.begins.data(), c.receive, p.counts.data(),
                          p.begins.data(), c.type, c.comm, nullptr);
     }},
    {"gather", "Gather all ranks' parts on the root", kDividedSize, ToRoot(kCollect), true, true,
     OfOthers,
     [](const Call& c) {
       return rhGather(c.send, c.receive, c.count, c.type, c.root, c.comm, nullptr);
     }},
    {"scatter",
     "Distribute the root's values, one part to each rank",
     kDividedSize,
     {Shape::kPerRank, Shape::kOne, Source::kRoot},
     true,
     true,
     OfOthers,
     [](const Call& c) {
       return rhScatter(c.send, c.receive, c.count, c.type, c.root, c.comm, nullptr);
     }},
    {"sendrecv",
     "Send to the next rank while receiving from the previous one",
     "size: data that each rank sends, and receives; count: values in it. busbw = algbw.",
     {Shape::kOne, Shape::kOne, Source::kPrevious},
     false,
     false,
     Whole,
     SendReceive},
    {"barrier",
     "Wait until all ranks have called it",
     "No data; only the time is measured.",
     {},
     false,
     false,
     Whole,
     [](const Call& c) { return rhBarrier(c.comm, nullptr); }},
}};

}  // namespace

size_t Collective::SizeInValues(int ranks, size_t count) const {
  return movement.divides() ? count * static_cast<size_t>(ranks) : count;
}

absl::Span<const Collective> Collectives() { return kCollectives; }

}  // namespace railhead::perf
