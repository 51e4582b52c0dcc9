// SPDX-License-Identifier: Apache-2.0
#include "runtime/tuner/tuner.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "runtime/collectives/leaders.h"
#include "runtime/collectives/ways.h"

namespace railhead::tuner {
namespace {

using collectives::Algorithm;
using collectives::Collective;
using collectives::Way;
using collectives::Ways;

bool IsPossible(const Way& way, Collective collective, int ranks, const Network& network) {
  return way.collective == collective &&
         (way.peers == collectives::Peers::kFew || ranks - 1 <= network.most_peers) &&
         (network.places > 1 || way.algorithm != Algorithm::kHierarchical);
}

bool HasParts(Collective collective) {
  return collective == Collective::kAllGather || collective == Collective::kReduceScatter;
}

// The part of a call that ranks with the same number in their places do with each other.
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

Estimate EstimateOf(Collective collective, const Choice& choice, size_t bytes, int ranks,
                    const Network& network) {
  if (choice.algorithm == Algorithm::kHierarchical) {
    const Column column = ColumnOf(collective, bytes, network);
    // Parts of ranks go through memory place by place and round by round.
    const bool parts = HasParts(collective);
    const int times = parts ? ranks - network.places * (network.columns - 1) : 1;
    const int rounds = parts ? network.rounds : 1;
    Estimate estimate =
        EstimateOf(collective, {choice.among_places}, column.bytes / static_cast<size_t>(rounds),
                   column.ranks, column.network);
    estimate.choice = choice;
    estimate.seconds = times * network.local_alpha +
                       static_cast<double>(bytes) * network.local_beta + rounds * estimate.seconds;
    return estimate;
  }
  const Way& way = *collectives::FindWay(collective, choice.algorithm);
  const collectives::Terms terms(bytes, ranks, network.alpha, network.beta, network.gamma);
  return {choice, way.seconds(terms), way.memory(bytes, ranks)};
}

// Returns true if the first is preferred.
bool IsBetter(const Estimate& a, const Estimate& b) {
  if (a.is_modest() != b.is_modest()) return a.is_modest();
  return a.seconds < b.seconds;
}

// Calls visit(estimate) for each that is possible.
template <class Visit>
void ForEachChoice(Collective collective, size_t bytes, int ranks, const Network& network,
                   Visit visit) {
  const auto visit_one = [&](const Choice& choice) {
    visit(EstimateOf(collective, choice, bytes, ranks, network));
  };
  for (const Way& way : Ways()) {
    if (!IsPossible(way, collective, ranks, network)) continue;
    if (way.algorithm != Algorithm::kHierarchical) {
      visit_one({way.algorithm});
      continue;
    }
    const Column column = ColumnOf(collective, bytes, network);
    for (const Way& among : Ways()) {
      if (IsPossible(among, collective, column.ranks, column.network)) {
        visit_one({way.algorithm, among.algorithm});
      }
    }
  }
}

std::vector<std::string> AlgorithmsFor(Collective collective) {
  std::vector<std::string> names;
  for (const Way& way : Ways()) {
    if (way.collective == collective) names.emplace_back(Name(way.algorithm));
  }
  return names;
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

bool CanFollow(const Pin& pin, int ranks, const Network& network) {
  const Way* const way = collectives::FindWay(pin.collective, pin.algorithm);
  return way != nullptr && IsPossible(*way, pin.collective, ranks, network);
}

absl::StatusOr<Pin> ParsePin(absl::string_view entry) {
  const auto wrong = [&](absl::string_view why) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", entry, "': ", why,
                     "; an entry is COLLECTIVE=ALGORITHM or COLLECTIVE<=SIZE=ALGORITHM"));
  };
  const size_t equals = entry.rfind('=');
  if (equals == absl::string_view::npos || equals == 0 || entry[equals - 1] == '<') {
    return wrong("no algorithm given");
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
  const auto* const first = std::find_if(
      Ways().begin(), Ways().end(), [&](const Way& way) { return what == Name(way.collective); });
  if (first == Ways().end()) return wrong("unknown collective");
  pin.collective = first->collective;
  for (const Way& way : Ways()) {
    if (way.collective != pin.collective || how != Name(way.algorithm)) continue;
    pin.algorithm = way.algorithm;
    return pin;
  }
  return wrong(
      absl::StrCat("its algorithms are ", absl::StrJoin(AlgorithmsFor(pin.collective), ", ")));
}

}  // namespace

std::string Name(const Choice& choice) {
  if (choice.algorithm != Algorithm::kHierarchical) return collectives::Name(choice.algorithm);
  return absl::StrCat(collectives::Name(choice.algorithm), " (",
                      collectives::Name(choice.among_places), ")");
}

std::string ToString(const Pin& pin) {
  const std::string limit =
      pin.most_bytes == SIZE_MAX ? std::string() : absl::StrCat("<=", pin.most_bytes);
  return absl::StrCat(Name(pin.collective), limit, "=", Name(pin.algorithm));
}

bool SameSteps(Collective collective, const Choice& a, const Choice& b, int ranks) {
  if (a == b) return true;
  if (ranks != 2) return false;
  // Among two there is one place.
  const auto messages = [&](const Choice& choice) {
    return collectives::FindWay(collective, choice.algorithm)->between_two;
  };
  return messages(a) == messages(b);
}

std::vector<Estimate> Estimates(Collective collective, size_t bytes, int ranks,
                                const Network& network) {
  std::vector<Estimate> estimates;
  ForEachChoice(collective, bytes, ranks, network,
                [&](const Estimate& estimate) { estimates.push_back(estimate); });
  std::stable_sort(estimates.begin(), estimates.end(), IsBetter);
  return estimates;
}

absl::StatusOr<std::vector<Pin>> ParsePins(absl::string_view text) {
  std::vector<Pin> pins;
  if (absl::StripAsciiWhitespace(text).empty()) return pins;
  for (const absl::string_view entry : absl::StrSplit(text, ',')) {
    absl::StatusOr<Pin> pin = ParsePin(absl::StripAsciiWhitespace(entry));
    if (!pin.ok()) return pin.status();
    pins.push_back(*pin);
  }
  return pins;
}

absl::Status CheckPins(const std::vector<Pin>& pins, int ranks, const Network& network,
                       absl::string_view flat_reason) {
  const auto wrong = [](const Pin& pin, absl::string_view why) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", ToString(pin), "' cannot be followed: ", why));
  };
  for (auto pin = pins.begin(); pin != pins.end(); ++pin) {
    const Column column = ColumnOf(pin->collective, 0, network);
    const bool hierarchical = pin->algorithm == Algorithm::kHierarchical;
    const bool in_columns = network.places > 1 && CanFollow(*pin, column.ranks, column.network);
    if (!CanFollow(*pin, ranks, network) && !in_columns) {
      if (!hierarchical) {
        const int peers = (network.places > 1 ? column.ranks : ranks) - 1;
        return wrong(*pin, absl::StrCat("it connects a rank with ", peers,
                                        " others, and RLIMIT_MEMLOCK leaves room for RDMA "
                                        "connections to ",
                                        network.most_peers, "; raise it"));
      }
      return wrong(*pin, absl::StrCat("ranks share no memory inside pods",
                                      flat_reason.empty() ? "" : ": ", flat_reason));
    }
    const auto before = std::find_if(pins.begin(), pin, [&](const Pin& other) {
      // After a hierarchical one, others are for the ranks of different places.
      const bool of_all = hierarchical || other.algorithm != Algorithm::kHierarchical;
      return other.collective == pin->collective && other.most_bytes >= pin->most_bytes && of_all &&
             CanFollow(other, ranks, network);
    });
    if (before != pin) {
      return wrong(*pin, absl::StrCat("'", ToString(*before),
                                      "' comes before it, and is followed for all of its sizes"));
    }
  }
  return absl::OkStatus();
}

const Pin* Tuner::Pinned(Collective collective, size_t bytes, int ranks,
                         const Network& network) const {
  for (const Pin& pin : pins_) {
    if (pin.collective != collective || bytes > pin.most_bytes) continue;
    if (CanFollow(pin, ranks, network)) return &pin;
  }
  return nullptr;
}

Choice Tuner::Choose(Collective collective, size_t bytes) const {
  const Pin* const pin = Pinned(collective, bytes, ranks_, network_);
  const Column column = ColumnOf(collective, bytes, network_);
  const Pin* const among_places = Pinned(collective, bytes, column.ranks, column.network);
  std::optional<Estimate> best;
  ForEachChoice(collective, bytes, ranks_, network_, [&](const Estimate& estimate) {
    const Choice& choice = estimate.choice;
    if (pin != nullptr && choice.algorithm != pin->algorithm) return;
    if (choice.algorithm == Algorithm::kHierarchical && among_places != nullptr &&
        choice.among_places != among_places->algorithm) {
      return;
    }
    if (!best.has_value() || IsBetter(estimate, *best)) best = estimate;
  });
  return best.has_value() ? best->choice : Choice();
}

double Tuner::Seconds(Collective collective, const Choice& choice, size_t bytes) const {
  return EstimateOf(collective, choice, bytes, ranks_, network_).seconds;
}

}  // namespace railhead::tuner
