// SPDX-License-Identifier: Apache-2.0
//
// Autotuner: selects the algorithm of each call by measurement, if the model expects several to be
// close (algorithm_trial.h). Pure. All ranks request choices for the same collectives in the same
// order, and so get the same answers.
//
// Sizes are grouped in classes, each up to a power of two; the time of a call is scaled to its
// class by the model.
//
// Algorithms that the model expects to be much slower, or that need much memory, are not tried.
//
// Nothing is measured if the user has set the algorithm, if there is one algorithm only, or for
// calls that move nothing.
#ifndef RAILHEAD_RUNTIME_TUNER_AUTOTUNER_H_
#define RAILHEAD_RUNTIME_TUNER_AUTOTUNER_H_

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/collectives/collective.h"
#include "runtime/tuner/algorithm_trial.h"
#include "runtime/tuner/tuner.h"

namespace railhead::tuner {

class Autotuner {
 public:
  // Selection for one call.
  struct Turn {
    Choice choice;
    AlgorithmTrial* trial =
        nullptr;       // null: the call is not measured; must not outlive the Autotuner
    double scale = 1;  // factor of its seconds before AlgorithmTrial::Record
  };

  explicit Autotuner(Tuner tuner) : tuner_(std::move(tuner)) {}

  // Returns how to run the next call. Record its time with the trial, if any, before the next
  // Next.
  Turn Next(collectives::Collective collective, size_t bytes);

  // Returns the choice and its reasons for people: one line per algorithm.
  std::string Explain(collectives::Collective collective, size_t bytes) const;

 private:
  static constexpr size_t kClasses = 64;

  // Algorithms of a class that are tried, and their measurements.
  struct Class {
    size_t bytes = 0;  // largest size of the class
    std::vector<Estimate> ways;
    std::optional<AlgorithmTrial> trial;  // none: there is one algorithm
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

#endif  // RAILHEAD_RUNTIME_TUNER_AUTOTUNER_H_
