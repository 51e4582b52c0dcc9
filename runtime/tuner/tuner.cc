// SPDX-License-Identifier: Apache-2.0
#include "runtime/tuner/tuner.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "runtime/collectives/leaders.h"
#include "runtime/collectives/timetable.h"

namespace railhead::tuner {
namespace {

using collectives::Algorithm;
using collectives::Collective;

// The terms of the formulas, for n ranks and S bytes.
struct Terms {
  Terms(size_t bytes, int ranks, const Network& network)
      : n(ranks),
        log(std::bit_width(static_cast<unsigned>(ranks) - 1)),
        odd(std::has_single_bit(static_cast<unsigned>(ranks)) ? 0 : 1),
        a(network.alpha),
        whole(static_cast<double>(bytes) * network.beta),
        work(static_cast<double>(bytes) * network.gamma),
        segments(std::max(1.0, static_cast<double>(collectives::Train(bytes).size()))) {}

  double n;
  double log;       // steps of a tree or an exchange
  double odd;       // 1 where some ranks are guests of others
  double a;         // alpha
  double whole;     // to send all bytes
  double work;      // to reduce all bytes
  double segments;  // of what travels in a row through all ranks
};

using Formula = double (*)(const Terms& t);

struct Way {
  Collective collective;
  Algorithm algorithm;
  bool needs_all_connected;
  Formula seconds;  // null: what is done in memory, and another way among the places
};

constexpr Way kWays[] = {
    // Reduced while it goes round once, spread while it goes round again.
    {Collective::kAllReduce, Algorithm::kRing, false,
     [](const Terms& t) { return 2 * (t.n - 1) * t.a + (t.n - 1) / t.n * (2 * t.whole + t.work); }},
    {Collective::kAllReduce, Algorithm::kRecursiveDoubling, false,
     [](const Terms& t) { return (t.log + t.odd) * (t.a + t.whole + t.work); }},
    {Collective::kAllReduce, Algorithm::kHalvingDoubling, false,
     [](const Terms& t) {
       return 2 * (t.log - t.odd) * t.a + (t.n - 1) / t.n * (2 * t.whole + t.work) +
              t.odd * (2 * t.a + 2 * t.whole + t.work);
     }},
    // Each half goes up and down a tree; a rank inside one of them receives twice and sends twice.
    {Collective::kAllReduce, Algorithm::kDoubleTree, false,
     [](const Terms& t) {
       return (2 * t.log + t.segments) * (t.a + (1.5 * t.whole + t.work) / t.segments) +
              0.5 * t.whole;
     }},
    {Collective::kAllReduce, Algorithm::kDirect, true,
     [](const Terms& t) { return t.a + (t.n - 1) * (0.2 * t.a + t.whole + t.work); }},

    {Collective::kBroadcast, Algorithm::kRing, false,
     [](const Terms& t) { return (t.n - 2 + t.segments) * (t.a + t.whole / t.segments); }},
    {Collective::kBroadcast, Algorithm::kBinomial, false,
     [](const Terms& t) { return t.log * (t.a + t.whole); }},

    {Collective::kReduce, Algorithm::kRing, false,
     [](const Terms& t) {
       return (t.n - 2 + t.segments) * (t.a + (t.whole + t.work) / t.segments);
     }},
    {Collective::kReduce, Algorithm::kBinomial, false,
     [](const Terms& t) { return t.log * (t.a + t.whole + t.work); }},

    {Collective::kBarrier, Algorithm::kRing, false,
     [](const Terms& t) { return 2 * (t.n - 1) * t.a; }},
    {Collective::kBarrier, Algorithm::kRecursiveDoubling, false,
     [](const Terms& t) { return (t.log + t.odd) * t.a; }},

    {Collective::kAllGather, Algorithm::kRing, false,
     [](const Terms& t) { return (t.n - 1) * t.a + (t.n - 1) / t.n * t.whole; }},
    {Collective::kReduceScatter, Algorithm::kRing, false,
     [](const Terms& t) { return (t.n - 1) * t.a + (t.n - 1) / t.n * (t.whole + t.work); }},

    // Messages of different steps do not wait for each other.
    {Collective::kAllToAll, Algorithm::kPairwise, true,
     [](const Terms& t) { return t.a + (t.n - 1) * 0.2 * t.a + (t.n - 1) / t.n * t.whole; }},
    {Collective::kAllToAll, Algorithm::kBruck, false,
     [](const Terms& t) { return t.log * (t.a + t.whole / 2); }},

    {Collective::kGather, Algorithm::kDirect, true,
     [](const Terms& t) { return t.a + (t.n - 1) * (0.2 * t.a + t.whole / t.n); }},
    {Collective::kGather, Algorithm::kBinomial, false,
     [](const Terms& t) { return t.log * t.a + 1.5 * (t.n - 1) / t.n * t.whole; }},
    {Collective::kScatter, Algorithm::kDirect, true,
     [](const Terms& t) { return t.a + (t.n - 1) * (0.2 * t.a + t.whole / t.n); }},
    {Collective::kScatter, Algorithm::kBinomial, false,
     [](const Terms& t) { return t.log * t.a + 1.5 * (t.n - 1) / t.n * t.whole; }},

    {Collective::kAllReduce, Algorithm::kHierarchical, false, nullptr},
    {Collective::kBroadcast, Algorithm::kHierarchical, false, nullptr},
    {Collective::kBarrier, Algorithm::kHierarchical, false, nullptr},
    {Collective::kAllGather, Algorithm::kHierarchical, false, nullptr},
    {Collective::kReduceScatter, Algorithm::kHierarchical, false, nullptr},
};

// Pairs that are the same among two ranks.
struct Twins {
  Collective collective;
  std::array<Algorithm, 2> algorithms;
};
constexpr Twins kTwins[] = {
    {Collective::kAllReduce, {Algorithm::kRing, Algorithm::kHalvingDoubling}},
    {Collective::kAllReduce, {Algorithm::kRecursiveDoubling, Algorithm::kDirect}},
    {Collective::kAllToAll, {Algorithm::kPairwise, Algorithm::kBruck}},
    {Collective::kGather, {Algorithm::kDirect, Algorithm::kBinomial}},
    {Collective::kScatter, {Algorithm::kDirect, Algorithm::kBinomial}},
};

bool IsPossible(const Way& way, Collective collective, const Network& network) {
  return way.collective == collective && (network.all_connected || !way.needs_all_connected) &&
         (network.places > 1 || way.seconds != nullptr);
}

bool HasParts(Collective collective) {
  return collective == Collective::kAllGather || collective == Collective::kReduceScatter;
}

// What ranks with the same number in their places do with each other.
struct Column {
  size_t bytes;
  int ranks;
  Network network;
};
Column ColumnOf(Collective collective, size_t bytes, const Network& network) {
  const auto columns = static_cast<size_t>(network.columns);
  const size_t leaders = HasParts(collective) ? columns : collectives::Leaders(bytes, columns);
  Column column = {(bytes + leaders - 1) / leaders, network.places, network};
  column.network.places = 1;
  return column;
}

double SecondsOf(Collective collective, const Choice& choice, size_t bytes, int ranks,
                 const Network& network) {
  if (choice.algorithm == Algorithm::kHierarchical) {
    const Column column = ColumnOf(collective, bytes, network);
    // Parts of ranks go through memory place by place and round by round.
    const bool parts = HasParts(collective);
    const int times = parts ? ranks - network.places * (network.columns - 1) : 1;
    const int rounds = parts ? network.rounds : 1;
    return times * network.local_alpha + static_cast<double>(bytes) * network.local_beta +
           rounds * SecondsOf(collective, {choice.among_places},
                              column.bytes / static_cast<size_t>(rounds), column.ranks,
                              column.network);
  }
  const Way* const way = std::find_if(std::begin(kWays), std::end(kWays), [&](const Way& any) {
    return any.collective == collective && any.algorithm == choice.algorithm;
  });
  return way->seconds(Terms(bytes, ranks, network));
}

// Calls visit(choice, seconds) for each that is possible.
template <class Visit>
void ForEachChoice(Collective collective, size_t bytes, int ranks, const Network& network,
                   Visit visit) {
  const auto visit_one = [&](const Choice& choice) {
    visit(choice, SecondsOf(collective, choice, bytes, ranks, network));
  };
  for (const Way& way : kWays) {
    if (!IsPossible(way, collective, network)) continue;
    if (way.algorithm != Algorithm::kHierarchical) {
      visit_one({way.algorithm});
      continue;
    }
    const Network column = ColumnOf(collective, bytes, network).network;
    for (const Way& among : kWays) {
      if (IsPossible(among, collective, column)) visit_one({way.algorithm, among.algorithm});
    }
  }
}

std::vector<std::string> AlgorithmsFor(Collective collective) {
  std::vector<std::string> names;
  for (const Way& way : kWays) {
    if (way.collective == collective) names.emplace_back(Name(way.algorithm));
  }
  return names;
}

// The number of the name in the list.
template <class List>
std::optional<size_t> Find(const List& names, absl::string_view name) {
  for (size_t i = 0; i < names.size(); ++i) {
    if (name == names[i]) return i;
  }
  return std::nullopt;
}

std::optional<size_t> ParseBytes(absl::string_view text) {
  size_t unit = 1;
  if (!text.empty()) {
    const size_t index = absl::string_view("KMG").find(absl::ascii_toupper(text.back()));
    if (index != absl::string_view::npos) {
      unit <<= 10U * (index + 1);
      text.remove_suffix(1);
    }
  }
  uint64_t count = 0;
  if (!absl::SimpleAtoi(text, &count) || count > SIZE_MAX / unit) return std::nullopt;
  return count * unit;
}

absl::StatusOr<Pin> ParsePin(absl::string_view entry) {
  const auto wrong = [&](absl::string_view why) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", entry, "': ", why,
                     "; an entry is COLLECTIVE=ALGORITHM or COLLECTIVE<=SIZE=ALGORITHM"));
  };
  const size_t equals = entry.rfind('=');
  if (equals == absl::string_view::npos || equals == 0 || entry[equals - 1] == '<') {
    return wrong("it names no algorithm");
  }
  absl::string_view what = absl::StripAsciiWhitespace(entry.substr(0, equals));
  const absl::string_view how = absl::StripAsciiWhitespace(entry.substr(equals + 1));
  Pin pin{Collective::kAllReduce, SIZE_MAX, Algorithm::kRing};
  if (const size_t limit = what.find("<="); limit != absl::string_view::npos) {
    const std::optional<size_t> bytes = ParseBytes(what.substr(limit + 2));
    if (!bytes.has_value()) return wrong("the size is not a number of bytes (K, M and G allowed)");
    pin.most_bytes = *bytes;
    what = what.substr(0, limit);
  }
  const std::optional<size_t> collective = Find(collectives::kCollectiveNames, what);
  if (!collective.has_value() || AlgorithmsFor(static_cast<Collective>(*collective)).empty()) {
    return wrong("there is no such collective");
  }
  pin.collective = static_cast<Collective>(*collective);
  const std::vector<std::string> allowed = AlgorithmsFor(pin.collective);
  if (!Find(allowed, how).has_value()) {
    return wrong(absl::StrCat("its algorithms are ", absl::StrJoin(allowed, ", ")));
  }
  pin.algorithm = static_cast<Algorithm>(*Find(collectives::kAlgorithmNames, how));
  return pin;
}

}  // namespace

std::string Name(const Choice& choice) {
  if (choice.algorithm != Algorithm::kHierarchical) return collectives::Name(choice.algorithm);
  return absl::StrCat(collectives::Name(choice.algorithm), " (",
                      collectives::Name(choice.among_places), ")");
}

bool SameSteps(Collective collective, const Choice& a, const Choice& b, int ranks) {
  if (a == b) return true;
  if (ranks != 2) return false;
  return std::any_of(std::begin(kTwins), std::end(kTwins), [&](const Twins& twins) {
    const auto has = [&](Algorithm algorithm) {
      return std::count(twins.algorithms.begin(), twins.algorithms.end(), algorithm) > 0;
    };
    return twins.collective == collective && has(a.algorithm) && has(b.algorithm);
  });
}

std::vector<Estimate> Estimates(Collective collective, size_t bytes, int ranks,
                                const Network& network) {
  std::vector<Estimate> estimates;
  ForEachChoice(collective, bytes, ranks, network, [&](const Choice& choice, double seconds) {
    estimates.push_back({choice, seconds});
  });
  std::stable_sort(estimates.begin(), estimates.end(),
                   [](const Estimate& a, const Estimate& b) { return a.seconds < b.seconds; });
  return estimates;
}

absl::StatusOr<std::vector<Pin>> ParsePins(absl::string_view text) {
  std::vector<Pin> pins;
  for (const absl::string_view entry : absl::StrSplit(text, ',', absl::SkipWhitespace())) {
    absl::StatusOr<Pin> pin = ParsePin(absl::StripAsciiWhitespace(entry));
    if (!pin.ok()) return pin.status();
    pins.push_back(*pin);
  }
  return pins;
}

absl::Status CheckPins(const std::vector<Pin>& pins, const Network& network,
                       absl::string_view flat_reason) {
  for (const Pin& pin : pins) {
    const Network among = ColumnOf(pin.collective, 0, network).network;
    const auto can = [&](const Way& way) {
      return way.algorithm == pin.algorithm &&
             (IsPossible(way, pin.collective, network) || IsPossible(way, pin.collective, among));
    };
    if (std::any_of(std::begin(kWays), std::end(kWays), can)) continue;
    std::string why = "ranks share no memory inside pods";
    if (pin.algorithm != Algorithm::kHierarchical) {
      why = "it connects all ranks with each other, which takes more memory than they may pin";
    } else if (!flat_reason.empty()) {
      absl::StrAppend(&why, ": ", flat_reason);
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "'", Name(pin.collective), "=", Name(pin.algorithm), "' cannot be followed: ", why));
  }
  return absl::OkStatus();
}

const Pin* Tuner::Pinned(Collective collective, size_t bytes, const Network& network) const {
  for (const Pin& pin : pins_) {
    if (pin.collective != collective || bytes > pin.most_bytes) continue;
    for (const Way& way : kWays) {
      if (IsPossible(way, collective, network) && way.algorithm == pin.algorithm) return &pin;
    }
  }
  return nullptr;
}

Choice Tuner::Choose(Collective collective, size_t bytes) const {
  const Pin* const pin = Pinned(collective, bytes, network_);
  const Network places = ColumnOf(collective, bytes, network_).network;
  const Pin* const among_places = Pinned(collective, bytes, places);
  Choice best;
  double least = std::numeric_limits<double>::infinity();
  ForEachChoice(collective, bytes, ranks_, network_, [&](const Choice& choice, double seconds) {
    if (pin != nullptr && choice.algorithm != pin->algorithm) return;
    if (choice.algorithm == Algorithm::kHierarchical && among_places != nullptr &&
        choice.among_places != among_places->algorithm) {
      return;
    }
    if (seconds >= least) return;
    best = choice;
    least = seconds;
  });
  return best;
}

double Tuner::Seconds(Collective collective, const Choice& choice, size_t bytes) const {
  return SecondsOf(collective, choice, bytes, ranks_, network_);
}

}  // namespace railhead::tuner
