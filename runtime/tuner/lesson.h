// SPDX-License-Identifier: Apache-2.0
//
// Which of a few ways is really the fastest, found in use: calls take turns with them. Pure: it
// counts calls and compares seconds. Ranks that count the same calls always choose alike, whatever
// each of them has measured, since only times that they have agreed on are compared.
//
// A trial has a few rounds. In a round every way has its turn: a few calls in a row, of which the
// first is not counted, for it may have to connect ranks, and meets caches as the way before left
// them. After a round ranks agree on what the counted calls took, and ways that were no faster than
// the one in use are out: so not many calls are done slowly, however wrong the expectation was. The
// way in use is replaced by one that was faster in every round, which chance alone hardly does,
// however noisy the machine.
// What they agree on is the mean of the ranks: so what one of them gains by leaving early, and the
// others lose because it comes late, does not count.
//
// Networks change, and the first calls of a job may be like no
// later ones: so there is a trial again after many calls, ever later while it finds the same.
#ifndef RAILHEAD_RUNTIME_TUNER_LESSON_H_
#define RAILHEAD_RUNTIME_TUNER_LESSON_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace railhead::tuner {

class Lesson {
 public:
  static constexpr size_t kMostWays = 3;
  static constexpr size_t kRounds = 4;
  static constexpr size_t kCounted = 3;  // calls of a turn
  static constexpr size_t kTurn = 1 + kCounted;
  static constexpr uint64_t kShortestRest = 1024;  // calls between trials
  static constexpr uint64_t kLongestRest = 16384;

  // What a round's counted calls took: of each way, in the order of turns, kCounted.
  using Times = std::array<double, kMostWays * kCounted>;

  // Of so many ways, from 2 to kMostWays, of which the first is expected to be the fastest.
  explicit Lesson(size_t ways);

  // By which way the next call is done.
  size_t way() const { return trying_ ? turns_[call_ / kTurn] : best_; }
  // Whether its time will count.
  bool counts() const { return trying_ && call_ % kTurn > 0; }
  // That call is done, and took this rank so long. True: a round is over, and before the next call
  // ranks must agree on the mean of their times().
  bool Record(double seconds);
  const Times& times() const { return times_; }
  void Agree(const Times& agreed);

  // The fastest as far as is known.
  size_t best() const { return best_; }
  bool trying() const { return trying_; }
  // What a way took in the last trial in which it was; 0 if that is not known yet.
  double seconds(size_t way) const { return seconds_[way]; }
  // How often ranks have agreed on a fastest.
  uint64_t trials() const { return trials_; }

 private:
  void BeginTrial();
  void EndTrial();

  size_t ways_;
  size_t best_ = 0;
  std::vector<double> seconds_;
  uint64_t trials_ = 0;

  bool trying_ = false;
  std::vector<size_t> turns_;               // the ways that are in the trial, first the best
  std::vector<std::vector<double>> heard_;  // of each way, what ranks have agreed on in this trial
  size_t round_ = 0;
  size_t call_ = 0;  // of the round
  Times times_{};

  uint64_t rest_ = kShortestRest;
  uint64_t rested_ = 0;
};

}  // namespace railhead::tuner

#endif  // RAILHEAD_RUNTIME_TUNER_LESSON_H_
