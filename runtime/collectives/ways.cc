// SPDX-License-Identifier: Apache-2.0
#include "runtime/collectives/ways.h"

#include <algorithm>
#include <bit>

#include "runtime/collectives/algorithms.h"
#include "runtime/collectives/timetable.h"

namespace railhead::collectives {
namespace {

// A second message to another rank, while the first is on its way, costs that much of one alone.
constexpr double kFurtherMessage = 0.2;
// Ranks that follow each other are mostly near each other. If all send to ranks far away, links and
// switches between them are shared: Thakur, Rabenseifner and Gropp (2005) measured rings up to
// twice as fast with large messages. A part of that, since trials decide (tuner/autotuner.h).
constexpr double kFar = 1.25;
// Up to this number of ranks, all ranks of a ring are neighbours of each other.
constexpr int kAllBeside = 3;

size_t Nothing(size_t /*bytes*/, int /*ranks*/) { return 0; }
size_t Once(size_t bytes, int /*ranks*/) { return bytes; }
size_t Twice(size_t bytes, int /*ranks*/) { return 2 * bytes; }
size_t OfEachRank(size_t bytes, int ranks) { return static_cast<size_t>(ranks) * bytes; }

// Steps around a circle, which are two messages at times.
double CircleSteps(const Terms& t) { return t.log * (1 + kFurtherMessage) * t.a; }
// A message to each other rank, of which none waits for another.
double ToEach(const Terms& t) { return t.a + (t.n - 1) * kFurtherMessage * t.a; }
// The fraction of all bytes that remains without a rank's own part.
double Others(const Terms& t) { return (t.n - 1) / t.n; }

double ThroughTree(const Terms& t) { return t.log * t.a + 1.5 * Others(t) * t.whole; }
double FromOrToEach(const Terms& t) { return ToEach(t) + Others(t) * t.whole; }

constexpr Way kWays[] = {
    // Reduced while it goes round once, spread while it goes round again.
    {Collective::kAllReduce, Algorithm::kRing, &RingAllReduce,
     [](const Terms& t) { return 2 * (t.n - 1) * t.a + Others(t) * (2 * t.whole + t.work); },
     Nothing},
    {Collective::kAllReduce, Algorithm::kRecursiveDoubling, &RecursiveDoublingAllReduce,
     [](const Terms& t) { return (t.log + t.odd) * (t.a + t.whole + t.work); }, Twice},
    {Collective::kAllReduce, Algorithm::kHalvingDoubling, &HalvingDoublingAllReduce,
     [](const Terms& t) {
       return 2 * (t.log - t.odd) * t.a + Others(t) * (2 * t.far + t.work) +
              t.odd * (2 * t.a + 2 * t.whole + t.work);
     },
     Nothing, Peers::kFew, Algorithm::kRing},
    // Each half goes up and down a tree; a rank inside one of them receives twice and sends twice.
    {Collective::kAllReduce, Algorithm::kDoubleTree, &DoubleTreeAllReduce,
     [](const Terms& t) {
       return (2 * t.log + t.segments) * (t.a + (1.5 * t.whole + t.work) / t.segments) +
              0.5 * t.whole;
     },
     Nothing},
    {Collective::kAllReduce, Algorithm::kDirect, &DirectAllReduce,
     [](const Terms& t) { return ToEach(t) + (t.n - 1) * (t.whole + t.work); }, OfEachRank,
     Peers::kAll, Algorithm::kRecursiveDoubling},

    {Collective::kBroadcast, Algorithm::kRing, &RingBroadcast,
     [](const Terms& t) { return (t.n - 2 + t.segments) * (t.a + t.whole / t.segments); }, Nothing},
    {Collective::kBroadcast, Algorithm::kBinomial, &BinomialBroadcast,
     [](const Terms& t) { return t.log * (t.a + t.whole); }, Nothing},
    {Collective::kBroadcast, Algorithm::kScatterAllGather, &ScatterAllGatherBroadcast,
     [](const Terms& t) { return t.log * t.a + CircleSteps(t) + Others(t) * (t.whole + t.far); },
     Nothing},

    {Collective::kReduce, Algorithm::kRing, &RingReduce,
     [](const Terms& t) {
       return (t.n - 2 + t.segments) * (t.a + (t.whole + t.work) / t.segments);
     },
     Nothing},
    {Collective::kReduce, Algorithm::kBinomial, &BinomialReduce,
     [](const Terms& t) { return t.log * (t.a + t.whole + t.work); }, Once},

    // All-reduces of a byte.
    {Collective::kBarrier, Algorithm::kRing, &RingAllReduce,
     [](const Terms& t) { return 2 * (t.n - 1) * t.a; }, Nothing},
    {Collective::kBarrier, Algorithm::kRecursiveDoubling, &RecursiveDoublingAllReduce,
     [](const Terms& t) { return (t.log + t.odd) * t.a; }, Nothing},

    {Collective::kAllGather, Algorithm::kRing, &RingAllGather,
     [](const Terms& t) { return (t.n - 1) * t.a + Others(t) * t.whole; }, Nothing},
    // Needs no memory where parts follow each other.
    {Collective::kAllGather, Algorithm::kBruck, &BruckAllGather,
     [](const Terms& t) { return CircleSteps(t) + Others(t) * t.far; }, Nothing, Peers::kFew,
     Algorithm::kRing},

    {Collective::kReduceScatter, Algorithm::kRing, &RingReduceScatter,
     [](const Terms& t) { return (t.n - 1) * t.a + Others(t) * (t.whole + t.work); }, Nothing},
    {Collective::kReduceScatter, Algorithm::kRecursiveHalving, &RecursiveHalvingReduceScatter,
     [](const Terms& t) { return CircleSteps(t) + Others(t) * (t.far + t.work); }, Once,
     Peers::kFew, Algorithm::kRing},

    {Collective::kAllToAll, Algorithm::kPairwise, &PairwiseAllToAll, FromOrToEach, Nothing,
     Peers::kAll},
    // All is copied before and after the steps, and half of it in each on both sides: about as long
    // as reducing takes. Between two, where it has no step less, pairwise is the better one always.
    {Collective::kAllToAll, Algorithm::kBruck, &BruckAllToAll,
     [](const Terms& t) {
       return t.log * (t.a + t.whole / 2) + (2 + t.log) * t.work + (t.n > 2 ? 0 : t.a);
     },
     Twice, Peers::kFew, Algorithm::kPairwise},

    {Collective::kGather, Algorithm::kDirect, &DirectGather, FromOrToEach, Nothing, Peers::kAll},
    {Collective::kGather, Algorithm::kBinomial, &BinomialGather, ThroughTree, Once, Peers::kFew,
     Algorithm::kDirect},
    {Collective::kScatter, Algorithm::kDirect, &DirectScatter, FromOrToEach, Nothing, Peers::kAll},
    {Collective::kScatter, Algorithm::kBinomial, &BinomialScatter, ThroughTree, Once, Peers::kFew,
     Algorithm::kDirect},

    {Collective::kAllReduce, Algorithm::kHierarchical, nullptr, nullptr, Nothing},
    {Collective::kBroadcast, Algorithm::kHierarchical, nullptr, nullptr, Nothing},
    {Collective::kBarrier, Algorithm::kHierarchical, nullptr, nullptr, Nothing},
    {Collective::kAllGather, Algorithm::kHierarchical, nullptr, nullptr, Nothing},
    {Collective::kReduceScatter, Algorithm::kHierarchical, nullptr, nullptr, Nothing},
};

}  // namespace

Terms::Terms(size_t bytes, int ranks, double alpha, double beta, double gamma)
    : n(ranks),
      log(std::bit_width(static_cast<unsigned>(ranks) - 1)),
      odd(std::has_single_bit(static_cast<unsigned>(ranks)) ? 0 : 1),
      a(alpha),
      whole(static_cast<double>(bytes) * beta),
      far(ranks <= kAllBeside ? whole : kFar * whole),
      work(static_cast<double>(bytes) * gamma),
      segments(std::max(1.0, static_cast<double>(Train(bytes).size()))) {}

absl::Span<const Way> Ways() { return kWays; }

const Way* FindWay(Collective collective, Algorithm algorithm) {
  for (const Way& way : kWays) {
    if (way.collective == collective && way.algorithm == algorithm) return &way;
  }
  return nullptr;
}

}  // namespace railhead::collectives
