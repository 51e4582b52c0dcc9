// SPDX-License-Identifier: Apache-2.0
//
// Which algorithm does the next call of a collective: where the model expects several to take about
// as long, it is learnt which of them really is the fastest (lesson.h). Pure. All ranks ask for the
// same collectives in the same order, and so get the same answers.
//
// Sizes are learnt of in classes, each up to a power of two: what a call of another size of the
// class took is scaled as the model has it.
//
// What the model expects to be much slower, or what takes much memory, is not tried.
//
// Nothing is learnt where a user has laid the algorithm down, where there is one way, and of calls
// that move nothing.
#ifndef RAILHEAD_RUNTIME_TUNER_LEARNER_H_
#define RAILHEAD_RUNTIME_TUNER_LEARNER_H_

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/collectives/collective.h"
#include "runtime/tuner/lesson.h"
#include "runtime/tuner/tuner.h"

namespace railhead::tuner {

class Learner {
 public:
  // For one call.
  struct Turn {
    Choice choice;
    Lesson* lesson = nullptr;  // null: nothing is learnt from it; outlived by the Learner
    double scale = 1;          // of its seconds, before the lesson is told of them
  };

  explicit Learner(Tuner tuner) : tuner_(std::move(tuner)) {}

  // How the next call is done. If it has a lesson, that is told when the call is done, before the
  // next one is asked for.
  Turn Next(collectives::Collective collective, size_t bytes);

  // The choice and its reasons, for people: one line for each algorithm.
  std::string Explain(collectives::Collective collective, size_t bytes) const;

 private:
  static constexpr size_t kClasses = 64;

  // The ways of a class that are tried, and what is known of them.
  struct Class {
    size_t bytes = 0;  // the largest of it
    std::vector<Estimate> ways;
    std::optional<Lesson> lesson;  // none: there is one way
  };
  Class MakeClass(collectives::Collective collective, size_t number) const;
  double Seconds(collectives::Collective collective, const Choice& choice, size_t bytes) const;
  std::string DescribeNetwork() const;
  bool Learns(collectives::Collective collective, size_t bytes) const;

  Tuner tuner_;
  std::array<std::array<std::unique_ptr<Class>, kClasses>, collectives::kCollectiveNames.size()>
      classes_;
};

}  // namespace railhead::tuner

#endif  // RAILHEAD_RUNTIME_TUNER_LEARNER_H_
