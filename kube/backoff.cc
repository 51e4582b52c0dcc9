// SPDX-License-Identifier: Apache-2.0
#include "kube/backoff.h"

#include <algorithm>
#include <random>
#include <utility>

namespace railhead::kube {
namespace {

// 2^32 times anything is beyond every longest pause; counting further would only overflow.
constexpr int kMaxDoublings = 32;

}  // namespace

Random SystemRandom() {
  return [engine = std::mt19937_64(std::random_device{}())]() mutable {
    return std::uniform_real_distribution<double>(0, 1)(engine);
  };
}

absl::Duration PauseAfter(const BackoffOptions& options, int failures, double random) {
  absl::Duration pause = options.first;
  for (int i = 1; i < std::min(failures, kMaxDoublings) && pause < options.longest; ++i) pause *= 2;
  return std::min(pause, options.longest) * (0.5 + 0.5 * random);
}

Backoff::Backoff(BackoffOptions options, Random random)
    : options_(options), random_(std::move(random)) {}

absl::Duration Backoff::After(absl::Duration lasted) {
  failures_ = lasted >= options_.longest ? 1 : std::min(failures_ + 1, kMaxDoublings);
  return PauseAfter(options_, failures_, random_());
}

}  // namespace railhead::kube
