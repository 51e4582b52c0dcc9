// SPDX-License-Identifier: Apache-2.0
//
// Trial of a few algorithms in use: calls take turns with them, and the fastest is kept. Pure: it
// counts calls and compares seconds. Ranks that count the same calls always choose alike, because
// only times that all agreed on are compared.
//
// A trial has a few rounds. In a round every algorithm has a turn of a few consecutive calls; the
// first is not measured, since it may connect ranks, and has cold caches. After a round ranks agree
// on the times, and algorithms that were not faster than the current one drop out: so few calls are
// slow, however wrong the model was. An algorithm replaces the current one only if it was faster in
// every round, which noise alone rarely achieves.
// Ranks agree on their mean: time that one gains by leaving early, and others lose because it
// arrives late, cancels out.
//
// Networks change, and the first calls of a job may be atypical: trials repeat after many calls, at
// growing intervals while the result is the same.
#ifndef RAILHEAD_RUNTIME_TUNER_ALGORITHM_TRIAL_H_
#define RAILHEAD_RUNTIME_TUNER_ALGORITHM_TRIAL_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace railhead::tuner {

class AlgorithmTrial {
 public:
  static constexpr size_t kMostWays = 3;
  static constexpr size_t kRounds = 4;
  static constexpr size_t kCounted = 3;  // measured calls per turn
  static constexpr size_t kTurn = 1 + kCounted;
  static constexpr uint64_t kShortestRest = 1024;  // calls between trials
  static constexpr uint64_t kLongestRest = 16384;

  // Seconds of a round's measured calls: kCounted per algorithm, in order of turns.
  using Times = std::array<double, kMostWays * kCounted>;

  // Compares `ways` algorithms, 2 to kMostWays; the first is expected to be the fastest.
  explicit AlgorithmTrial(size_t ways);

  // Algorithm of the next call.
  size_t way() const { return trying_ ? turns_[call_ / kTurn] : best_; }
  // Returns true if its time will be used.
  bool counts() const { return trying_ && call_ % kTurn > 0; }
  // Records the time of that call on this rank. True: a round is over, and ranks must agree on the
  // mean of their times() before the next call.
  bool Record(double seconds);
  const Times& times() const { return times_; }
  void Agree(const Times& agreed);

  // The algorithm between trials, by the last one.
  size_t best() const { return best_; }
  bool trying() const { return trying_; }
  // Seconds of an algorithm in its last trial; 0 if unknown.
  double seconds(size_t way) const { return seconds_[way]; }
  // Number of completed trials.
  uint64_t trials() const { return trials_; }

 private:
  void BeginTrial();
  void EndTrial();

  size_t ways_;
  size_t best_ = 0;
  std::vector<double> seconds_;
  uint64_t trials_ = 0;

  bool trying_ = false;
  std::vector<size_t> turns_;               // algorithms in the trial, the best first
  std::vector<std::vector<double>> heard_;  // by algorithm: agreed times in this trial
  size_t round_ = 0;
  size_t call_ = 0;  // within the round
  Times times_{};

  uint64_t rest_ = kShortestRest;
  uint64_t rested_ = 0;
};

}  // namespace railhead::tuner

#endif  // RAILHEAD_RUNTIME_TUNER_ALGORITHM_TRIAL_H_
