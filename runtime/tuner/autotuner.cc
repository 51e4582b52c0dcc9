// SPDX-License-Identifier: Apache-2.0
#include "runtime/tuner/autotuner.h"

#include <algorithm>
#include <bit>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace railhead::tuner {
namespace {

using collectives::Algorithm;
using collectives::Collective;

// A way that the model expects to take longer than this multiple of the fastest is not tried.
constexpr double kClose = 2;
// Ways that differ only in what ranks of different places do are much alike: some of the others
// shall be tried too.
constexpr int kMostHierarchical = 2;

// Replaces estimates of zero.
constexpr double kLeastSeconds = 1e-9;

// Class 0 is of up to one byte, and each of up to twice as many as the last.
size_t ClassOf(size_t bytes) {
  return bytes <= 1 ? 0 : static_cast<size_t>(std::bit_width(bytes - 1));
}

}  // namespace

Autotuner::Class Autotuner::MakeClass(Collective collective, size_t number) const {
  Class made = {size_t{1} << number, {}, {}};
  int hierarchical = 0;
  for (const Estimate& way : tuner_.Estimates(collective, made.bytes)) {
    if (made.ways.size() == AlgorithmTrial::kMostWays) break;
    const bool first = made.ways.empty();
    if (!first && (!way.is_modest() || way.seconds > kClose * made.ways.front().seconds)) break;
    if (way.choice.algorithm == Algorithm::kHierarchical && hierarchical++ == kMostHierarchical) {
      continue;
    }
    const bool nothing_new = std::any_of(made.ways.begin(), made.ways.end(), [&](auto& other) {
      return SameSteps(collective, way.choice, other.choice, tuner_.ranks());
    });
    if (!nothing_new) made.ways.push_back(way);
  }
  if (made.ways.size() > 1) made.trial.emplace(made.ways.size());
  return made;
}

bool Autotuner::Learns(Collective collective, size_t bytes) const {
  return tuner_.ranks() > 1 && (bytes > 0 || collective == Collective::kBarrier) &&
         ClassOf(bytes) < kClasses && !tuner_.IsPinned(collective, bytes);
}

Autotuner::Turn Autotuner::Next(Collective collective, size_t bytes) {
  if (!Learns(collective, bytes)) return {tuner_.Choose(collective, bytes)};
  const size_t number = ClassOf(bytes);
  std::unique_ptr<Class>& any = classes_[static_cast<size_t>(collective)][number];
  if (any == nullptr) any = std::make_unique<Class>(MakeClass(collective, number));
  if (!any->trial.has_value()) return {any->ways.front().choice};
  const Estimate& way = any->ways[any->trial->way()];
  Turn turn = {way.choice, &*any->trial};
  if (any->trial->counts()) turn.scale = way.seconds / Seconds(collective, way.choice, bytes);
  return turn;
}

// Returns the model's estimate, never zero.
double Autotuner::Seconds(Collective collective, const Choice& choice, size_t bytes) const {
  return std::max(tuner_.Seconds(collective, choice, bytes), kLeastSeconds);
}

std::string Autotuner::Explain(Collective collective, size_t bytes) const {
  const bool learns = Learns(collective, bytes);
  Class known;
  if (learns) {
    const std::unique_ptr<Class>& any = classes_[static_cast<size_t>(collective)][ClassOf(bytes)];
    known = any != nullptr ? *any : MakeClass(collective, ClassOf(bytes));
  }
  const AlgorithmTrial* const trial = known.trial.has_value() ? &*known.trial : nullptr;
  Choice chosen = tuner_.Choose(collective, bytes);
  if (!known.ways.empty()) chosen = known.ways[trial != nullptr ? trial->best() : 0].choice;

  std::string text = absl::StrCat(Name(collective), " of ", bytes, " bytes among ", tuner_.ranks(),
                                  " ranks: ", Name(chosen), ", ");
  if (tuner_.IsPinned(collective, bytes)) {
    text += "set by RAILHEAD_ALGO\n";
  } else if (trial == nullptr) {
    text += "estimated: the fastest by the model\n";
  } else if (trial->trials() == 0) {
    absl::StrAppend(&text, "estimated: the fastest by the model, until calls of up to ",
                    known.bytes, " bytes have tried those marked +\n");
  } else {
    absl::StrAppend(&text, "learnt: the fastest in calls of up to ", known.bytes,
                    " bytes that have tried those marked +\n");
  }
  absl::StrAppend(&text, DescribeNetwork());
  for (const Estimate& estimate : tuner_.Estimates(collective, bytes)) {
    const auto way = std::find_if(known.ways.begin(), known.ways.end(), [&](const Estimate& any) {
      return any.choice == estimate.choice;
    });
    const bool tried = trial != nullptr && way != known.ways.end();
    const auto number = static_cast<size_t>(way - known.ways.begin());
    absl::StrAppendFormat(&text, "  %c%c %-36s %12.1f us estimated",
                          estimate.choice == chosen ? '*' : ' ', tried ? '+' : ' ',
                          Name(estimate.choice), estimate.seconds * 1e6);
    if (tried && trial->seconds(number) > 0) {
      const double scale = way->seconds / Seconds(collective, way->choice, bytes);
      absl::StrAppendFormat(&text, " %12.1f us measured", trial->seconds(number) / scale * 1e6);
    }
    if (!estimate.is_modest()) {
      absl::StrAppendFormat(&text, ", and %d MiB more memory: only if RAILHEAD_ALGO selects it",
                            estimate.memory >> 20U);
    }
    text += '\n';
  }
  return text;
}

std::string Autotuner::DescribeNetwork() const {
  const Network& network = tuner_.network();
  std::string text = absl::StrFormat(
      "  model: a message takes %.1f us and %.3f ns for each byte (%.2f GB/s), reducing %.3f ns\n",
      network.alpha * 1e6, network.beta * 1e9, 1e-9 / network.beta, network.gamma * 1e9);
  if (network.places > 1) {
    absl::StrAppendFormat(
        &text,
        "  %d places of %d rank(s) or more, each with separate memory: hierarchical takes "
        "%.1f us there and %.3f ns for each byte, and what the way in brackets takes among the "
        "places\n",
        network.places, network.columns, network.local_alpha * 1e6, network.local_beta * 1e9);
  }
  return text;
}

}  // namespace railhead::tuner
