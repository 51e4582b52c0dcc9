// SPDX-License-Identifier: Apache-2.0
#include "runtime/tuner/algorithm_trial.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace railhead::tuner {
namespace {

// Minimum ratio of the times for a change to another way: less may be chance, and programs that sum
// floats show each change in the last bits.
constexpr double kWorthAChange = 1.1;

// Disturbances make a measurement longer, never shorter.
double LowerMedian(std::vector<double> times) {
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>((times.size() - 1) / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

}  // namespace

AlgorithmTrial::AlgorithmTrial(size_t ways) : ways_(ways), seconds_(ways) { BeginTrial(); }

void AlgorithmTrial::BeginTrial() {
  trying_ = true;
  turns_.resize(ways_);
  std::iota(turns_.begin(), turns_.end(), size_t{0});
  std::swap(turns_[0], turns_[best_]);
  heard_.assign(ways_, {});
  round_ = 0;
  call_ = 0;
}

bool AlgorithmTrial::Record(double seconds) {
  if (!trying_) {
    if (++rested_ >= rest_) BeginTrial();
    return false;
  }
  if (counts()) times_[call_ / kTurn * kCounted + call_ % kTurn - 1] = seconds;
  return ++call_ == turns_.size() * kTurn;
}

void AlgorithmTrial::Agree(const Times& agreed) {
  std::vector<size_t> left;
  double best = 0;
  for (size_t turn = 0; turn < turns_.size(); ++turn) {
    const size_t way = turns_[turn];
    const auto* const first = agreed.begin() + turn * kCounted;
    const std::vector<double> times(first, first + kCounted);
    heard_[way].insert(heard_[way].end(), times.begin(), times.end());
    seconds_[way] = LowerMedian(heard_[way]);
    const double now = LowerMedian(times);
    if (way == best_) best = now;
    if (way == best_ || now < best) left.push_back(way);
  }
  turns_ = std::move(left);
  call_ = 0;
  if (++round_ == kRounds || turns_.size() == 1) EndTrial();
}

void AlgorithmTrial::EndTrial() {
  const size_t fastest = *std::min_element(
      turns_.begin(), turns_.end(), [&](size_t a, size_t b) { return seconds_[a] < seconds_[b]; });
  const bool change = seconds_[best_] > kWorthAChange * seconds_[fastest];
  if (change) best_ = fastest;
  rest_ = change || trials_ == 0 ? kShortestRest : std::min(2 * rest_, kLongestRest);
  ++trials_;
  rested_ = 0;
  trying_ = false;
}

}  // namespace railhead::tuner
