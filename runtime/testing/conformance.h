// SPDX-License-Identifier: Apache-2.0
//
// The matrix of what the collectives must do: every collective, type, operator, number of ranks,
// size around a boundary, in and out of place, on every transport and by every algorithm. A plan
// has all pairs of these that can matter to each other, and of the whole product as much as time
// allows; RAILHEAD_CONFORMANCE=full in the environment asks for all of it, which takes hours.
#ifndef RAILHEAD_RUNTIME_TESTING_CONFORMANCE_H_
#define RAILHEAD_RUNTIME_TESTING_CONFORMANCE_H_

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "runtime/testing/boundaries.h"
#include "runtime/testing/collectives.h"
#include "runtime/transport/verbs/slot.h"
#include "runtime/tuner/tuner.h"

namespace railhead::testing {

enum class Transport { kShm, kTcp, kTcpRails, kVerbs, kHierarchical };
inline constexpr std::array<const char*, 5> kTransportNames = {"shm", "tcp", "tcp_rails", "verbs",
                                                               "hierarchical"};
inline const char* Name(Transport transport) {
  return kTransportNames[static_cast<size_t>(transport)];
}

inline std::vector<int> RankCounts(Transport transport) {
  // The least number of places that have several ranks each is two.
  if (transport == Transport::kHierarchical) return {4, 6, 8};
  // Who is alone shares no memory.
  if (transport == Transport::kShm) return {2, 3, 4, 5, 8};
  return {1, 2, 3, 4, 5, 8};
}

inline constexpr std::array<Collective, 10> kAllCollectives = {
    Collective::kAllReduce,  Collective::kAllGather, Collective::kReduceScatter,
    Collective::kBroadcast,  Collective::kReduce,    Collective::kBarrier,
    Collective::kAllToAll,   Collective::kGather,    Collective::kScatter,
    Collective::kSendReceive};

// Those that users may ask for by RAILHEAD_ALGO.
inline std::vector<Algorithm> PinnableAlgorithms(Collective collective) {
  std::vector<Algorithm> algorithms;
  for (size_t i = 0; i < collectives::kAlgorithmNames.size(); ++i) {
    const std::string pin = absl::StrCat(Name(collective), "=", collectives::kAlgorithmNames[i]);
    if (tuner::ParsePins(pin).ok()) algorithms.push_back(static_cast<Algorithm>(i));
  }
  return algorithms;
}

// What is done to each value; of collectives that reduce nothing only the type counts.
struct Kind {
  rhDataType_t type;
  rhRedOp_t op;
  bool scaled;
};
inline std::vector<Kind> KindsOf(Collective collective) {
  std::vector<Kind> kinds;
  for (int number = rhInt8; number <= rhUint16; ++number) {
    const auto type = static_cast<rhDataType_t>(number);
    for (int op = rhSum; op <= (Reduces(collective) ? rhBxor : rhSum); ++op) {
      if (!reduce::CanReduce(type, static_cast<rhRedOp_t>(op))) continue;
      kinds.push_back({type, static_cast<rhRedOp_t>(op), false});
    }
    if (Reduces(collective)) kinds.push_back({type, rhSum, true});
  }
  return kinds;
}

inline bool HasUneven(Collective collective) {
  return collective == Collective::kAllGather || collective == Collective::kReduceScatter ||
         collective == Collective::kAllToAll;
}
inline bool HasInPlace(Collective collective, bool uneven) {
  return collective != Collective::kBarrier && collective != Collective::kSendReceive &&
         !(uneven && collective == Collective::kAllToAll);
}

// A size of interest: so many values more than there are in so many bytes.
struct Size {
  std::string name;
  size_t bytes = 0;
  int more = 0;
};

struct PlannedCase {
  CollectiveCase c;
  Way way;
  std::string size;  // which one of the way's; "" for any
};

// One communicator, and what is called on it.
struct World {
  Transport transport = Transport::kShm;
  int ranks = 1;
  int places = 1;
  bool interleaved = false;  // ranks 0, 1, ... are in places 0, 1, ... instead of one after another
  std::vector<int> place_of;  // by rank, where places have different numbers of ranks; or empty
  int rails = 1;              // of TCP or verbs
  std::string pins;           // RAILHEAD_ALGO; "": the tuner decides
  std::vector<Way> ways;      // what that comes to, and what is called in these ways
  std::vector<PlannedCase> cases;
};

inline std::string ToString(const World& world) {
  return absl::StrCat(
      Name(world.transport), ", ", world.ranks, " ranks in ", world.places,
      world.interleaved ? " interleaved places" : " places",
      world.place_of.empty() ? "" : absl::StrCat(" (", absl::StrJoin(world.place_of, " "), ")"),
      ", ", world.rails, " rails, RAILHEAD_ALGO=", world.pins);
}

// All that is called on one transport by so many ranks.
class Planner {
 public:
  // No call for which all ranks' buffers together are larger than `most_bytes`.
  Planner(Transport transport, int ranks, size_t most_bytes)
      : transport_(transport), ranks_(ranks), most_bytes_(most_bytes) {
    const char* const wanted = std::getenv("RAILHEAD_CONFORMANCE");
    full_ = wanted != nullptr && absl::string_view(wanted) == "full";
  }

  // One for each algorithm of the collective that has most of them; the others take turns. The last
  // one leaves the choice to the tuner.
  std::vector<World> Plan() {
    std::vector<World> worlds;
    for (size_t variant = 0; variant <= Variants(); ++variant) {
      World world;
      world.transport = transport_;
      world.ranks = ranks_;
      world.places = Places(variant);
      world.interleaved = variant % 4 >= 2;
      world.rails = transport_ == Transport::kTcpRails || transport_ == Transport::kVerbs ? 2 : 1;
      for (const Collective collective : kAllCollectives) {
        if (variant == Variants()) break;
        const size_t ways = Algorithms(collective).size();
        const Way way = WayOf(collective, variant % ways);
        Pin(world, way);
        if (variant >= ways) continue;  // done in an earlier world
        world.ways.push_back(way);
        AddSizes(world, way, variant);
        AddKinds(world, way, variant);
      }
      AddSuccession(world, variant);
      worlds.push_back(std::move(world));
    }
    return worlds;
  }

  // The ways to do a collective.
  std::vector<Way> WaysOf(Collective collective) const {
    std::vector<Way> ways;
    for (size_t i = 0; i < Algorithms(collective).size(); ++i) {
      ways.push_back(WayOf(collective, i));
    }
    return ways;
  }

  // The sizes of interest for a collective's way of this number.
  std::vector<Size> SizesOf(const Way& way, size_t variant) const {
    std::vector<Size> sizes;
    for (const int count : std::set<int>{0, 1, 2, ranks_ - 1, ranks_, ranks_ + 1}) {
      sizes.push_back({absl::StrCat(count, " values"), 0, count});
    }
    if (way.collective == Collective::kBarrier) sizes.resize(1);
    for (const Boundary& boundary : BoundariesOf(way, transport_ == Transport::kShm)) {
      // What does not depend on the column's algorithm is done twice, not with all of them.
      const bool in_columns = boundary.name.rfind("in columns", 0) == 0;
      if (way.algorithm == Algorithm::kHierarchical && !in_columns && variant > 1) continue;
      const size_t bytes = Bytes(way.collective, boundary.bytes);
      if (bytes > most_bytes_) continue;
      for (const int more : {-1, 0, 1}) {
        // Of the largest only what is beyond: fewer ranks do the others.
        if (bytes > kMuch && more < 1 && !full_) continue;
        sizes.push_back(
            {absl::StrCat(boundary.name, more < 0 ? "" : "+", more), boundary.bytes, more});
      }
    }
    return sizes;
  }

 private:
  static constexpr size_t kMuch = size_t{8} << 20U;  // of all ranks' buffers

  size_t Variants() const {
    size_t variants = 0;
    for (const Collective collective : kAllCollectives) {
      variants = std::max(variants, Algorithms(collective).size());
    }
    return variants;
  }
  // As many ranks in each of them, and at least two.
  int Places(size_t variant) const {
    if (transport_ != Transport::kHierarchical) return 1;
    return variant % 2 == 0 ? 2 : ranks_ / 2;
  }

  // Where places do a collective together these are for the columns.
  std::vector<Algorithm> Algorithms(Collective collective) const {
    const bool mailed = collective == Collective::kSendReceive;
    if (transport_ == Transport::kShm && !mailed) return {Algorithm::kSharedMemory};
    std::vector<Algorithm> algorithms = PinnableAlgorithms(collective);
    if (algorithms.empty()) return {Algorithm::kDirect};
    algorithms.erase(std::remove(algorithms.begin(), algorithms.end(), Algorithm::kHierarchical),
                     algorithms.end());
    return algorithms;
  }

  Way WayOf(Collective collective, size_t variant) const {
    Way way;
    way.collective = collective;
    way.ranks = ranks_;
    way.algorithm = Algorithms(collective)[variant];
    way.rails = transport_ == Transport::kTcpRails || transport_ == Transport::kVerbs ? 2 : 1;
    if (transport_ == Transport::kVerbs) way.max_payload = transport::verbs::kSlotPayload;
    const std::vector<Algorithm> all = PinnableAlgorithms(collective);
    if (transport_ == Transport::kHierarchical &&
        std::find(all.begin(), all.end(), Algorithm::kHierarchical) != all.end()) {
      way.column = std::exchange(way.algorithm, Algorithm::kHierarchical);
      way.local_ranks = ranks_ / Places(variant);
    }
    return way;
  }

  static void Pin(World& world, const Way& way) {
    const auto pin = [&](Algorithm algorithm) {
      const std::string text = absl::StrCat(Name(way.collective), "=", Name(algorithm));
      if (!tuner::ParsePins(text).ok()) return;  // there is one way
      absl::StrAppend(&world.pins, world.pins.empty() ? "" : ",", text);
    };
    pin(way.algorithm);
    if (way.algorithm == Algorithm::kHierarchical) pin(way.column);
  }

  // Of all ranks' buffers.
  size_t Bytes(Collective collective, size_t part) const {
    const auto ranks = static_cast<size_t>(ranks_);
    const bool parts = HasUneven(collective) || collective == Collective::kGather ||
                       collective == Collective::kScatter;
    return 2 * ranks * part * (parts ? ranks : 1);
  }

  // Values for which the plain reference is right to the bit on this way, and others.
  std::array<Values, 2> ValuesFor(const Way& way) const {
    const bool in_order = way.algorithm == Algorithm::kSharedMemory ||
                          (way.algorithm == Algorithm::kDirect && Reduces(way.collective)) ||
                          ranks_ <= 2;
    return {Values::kExact, in_order ? Values::kAny : Values::kRounded};
  }

  void AddSizes(World& world, const Way& way, size_t variant) {
    const std::vector<Kind> kinds = KindsOf(way.collective);
    for (const Size& size : SizesOf(way, variant)) {
      if (!full_) {
        // All kinds in turn.
        const size_t turn = turn_;
        AddSize(world, way, size, kinds[turn * 37 % kinds.size()], turn / 2 % 3 == 0,
                turn % 2 == 0);
        continue;
      }
      for (const Kind& kind : kinds) {
        for (const bool uneven : {false, true}) {
          for (const bool in_place : {false, true}) {
            AddSize(world, way, size, kind, uneven, in_place);
          }
        }
      }
    }
  }
  void AddSize(World& world, const Way& way, const Size& size, const Kind& kind, bool uneven,
               bool in_place) {
    // Some are few values of a large type.
    const size_t whole = size.bytes / reduce::SizeOf(kind.type);
    const size_t count =
        size.more < 0 ? std::max<size_t>(whole, 1) - 1 : whole + static_cast<size_t>(size.more);
    Add(world, way, kind, count, uneven, in_place, size.name);
  }

  // Of the kinds, with few values, those that are this number of ranks'; the others do the rest.
  void AddKinds(World& world, const Way& way, size_t variant) {
    if (way.collective == Collective::kBarrier) return;
    constexpr std::array<size_t, 5> kCounts = {1, 7, 130, 1000, 5003};
    const std::vector<Kind> kinds = KindsOf(way.collective);
    const std::vector<int> all = RankCounts(transport_);
    const auto number =
        static_cast<size_t>(std::find(all.begin(), all.end(), ranks_) - all.begin());
    for (size_t i = 0; i < kinds.size(); ++i) {
      if (!full_ && (i + variant) % all.size() != number) continue;
      const size_t turn = turn_;
      Add(world, way, kinds[i], kCounts[turn % kCounts.size()], turn % 3 == 0, turn % 2 == 0, "");
    }
  }

  // Any collectives, one after the other.
  void AddSuccession(World& world, size_t variant) {
    std::mt19937 random(static_cast<unsigned>(variant + 100 * static_cast<size_t>(ranks_)));
    for (int i = 0; i < 30; ++i) {
      Way way;
      way.collective = kAllCollectives[random() % kAllCollectives.size()];
      way.algorithm = Algorithm::kRing;
      const std::vector<Kind> kinds = KindsOf(way.collective);
      const size_t largest = size_t{1} << random() % 17;
      Add(world, way, kinds[random() % kinds.size()], random() % largest, random() % 4 == 0,
          random() % 2 == 0, "");
    }
  }

  void Add(World& world, const Way& way, const Kind& kind, size_t count, bool uneven, bool in_place,
           const std::string& size) {
    const size_t turn = turn_++;
    CollectiveCase c = {way.collective, kind.type,   kind.op, count, 0,
                        in_place,       kind.scaled, uneven};
    c.uneven = uneven && HasUneven(way.collective);
    c.in_place = in_place && HasInPlace(way.collective, c.uneven);
    c.root = static_cast<int>(Mix(turn) % static_cast<size_t>(ranks_));
    c.values = ValuesFor(way)[Mix(turn) / 64 % 2];
    // What is not known to the bit is looked at one by one.
    if (count > 100000) c.values = Values::kExact;
    world.cases.push_back({c, way, size});
  }

  const Transport transport_;
  const int ranks_;
  const size_t most_bytes_;
  bool full_ = false;
  size_t turn_ = 0;  // counts cases, so that what they are made of takes turns
};

// Any world of 2 to 9 ranks, and anything called in it: what a matrix leaves out. No call for which
// all ranks' buffers together are larger than `most_bytes`.
inline World Sample(unsigned seed, size_t most_bytes) {
  std::mt19937 random(seed);
  World world;
  world.transport = static_cast<Transport>(seed % kTransportNames.size());
  const bool several = world.transport == Transport::kHierarchical;
  world.ranks = several ? 3 + static_cast<int>(random() % 7) : 2 + static_cast<int>(random() % 8);
  if (world.transport == Transport::kTcpRails || world.transport == Transport::kVerbs) {
    world.rails = 1 << random() % 3;
  }
  if (several) {
    // Fewer places than ranks, and somebody in each of them.
    world.places = 2 + static_cast<int>(random() % static_cast<unsigned>(world.ranks - 2));
    for (int rank = 0; rank < world.ranks; ++rank) {
      const auto any = static_cast<int>(random() % static_cast<unsigned>(world.places));
      world.place_of.push_back(rank < world.places ? rank : any);
    }
    std::shuffle(world.place_of.begin(), world.place_of.end(), random);
  }
  for (const Collective collective : kAllCollectives) {
    std::vector<Algorithm> algorithms = PinnableAlgorithms(collective);
    const bool in_places = std::erase(algorithms, Algorithm::kHierarchical) > 0;
    if (algorithms.empty()) continue;
    // All ranks that share memory do these in one way.
    if (world.transport == Transport::kShm) continue;
    const auto pin = [&](Algorithm algorithm) {
      absl::StrAppend(&world.pins, world.pins.empty() ? "" : ",", Name(collective), "=",
                      Name(algorithm));
    };
    if (several && in_places && random() % 4 != 0) pin(Algorithm::kHierarchical);
    if (random() % 4 != 0) pin(algorithms[random() % algorithms.size()]);
  }
  constexpr int kCalls = 40;
  for (int i = 0; i < kCalls; ++i) {
    Way way;
    way.collective = kAllCollectives[random() % kAllCollectives.size()];
    way.ranks = world.ranks;
    const std::vector<Kind> kinds = KindsOf(way.collective);
    const Kind& kind = kinds[random() % kinds.size()];
    const auto ranks = static_cast<size_t>(world.ranks);
    const bool parts = HasUneven(way.collective) || way.collective == Collective::kGather ||
                       way.collective == Collective::kScatter;
    const size_t most = most_bytes / (2 * ranks * (parts ? ranks : 1)) / reduce::SizeOf(kind.type);
    // As many small ones as large ones.
    const size_t below = size_t{1} << random() % (std::bit_width(most) + 1);
    CollectiveCase c;
    c.collective = way.collective;
    c.type = kind.type;
    c.op = kind.op;
    c.scaled = kind.scaled;
    c.count = random() % std::min(below, most);
    c.uneven = random() % 3 == 0 && HasUneven(way.collective);
    c.in_place = random() % 2 == 0 && HasInPlace(way.collective, c.uneven);
    c.root = static_cast<int>(random() % ranks);
    c.values = world.ranks > 2 && c.count < 100000 && random() % 2 == 0 ? Values::kRounded
                                                                        : Values::kExact;
    world.cases.push_back({c, way, ""});
  }
  return world;
}

}  // namespace railhead::testing

#endif  // RAILHEAD_RUNTIME_TESTING_CONFORMANCE_H_
