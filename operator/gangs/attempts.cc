// SPDX-License-Identifier: Apache-2.0
#include "operator/gangs/attempts.h"

#include <algorithm>
#include <utility>

#include "kube/backoff.h"

namespace railhead::op::gangs {
namespace {

constexpr kube::BackoffOptions kPause = {absl::Milliseconds(500), absl::Seconds(30)};

}  // namespace

bool Attempts::Due(const std::string& gang, absl::Time now) const {
  const auto found = failed_.find(gang);
  return found == failed_.end() || found->second.due <= now;
}

void Attempts::Failed(const std::string& gang, std::string words, absl::Time now) {
  Failure& failure = failed_[gang];
  ++failure.times;
  failure.due = now + kube::PauseAfter(kPause, failure.times, 0.5);
  failure.words = std::move(words);
}

void Attempts::KeepOnly(const std::set<std::string>& gangs) {
  std::erase_if(failed_, [&](const auto& entry) { return !gangs.contains(entry.first); });
}

void Attempts::ForgetIdle(const std::set<std::string>& busy, absl::Time now) {
  std::erase_if(failed_, [&](const auto& entry) {
    return entry.second.due <= now && !busy.contains(entry.first);
  });
}

int Attempts::FailuresOf(const std::string& gang) const {
  const auto found = failed_.find(gang);
  return found == failed_.end() ? 0 : found->second.times;
}

std::string Attempts::WordsAbout(const std::string& gang) const {
  const auto found = failed_.find(gang);
  return found == failed_.end() || found->second.times < kMayPass ? "" : found->second.words;
}

std::set<std::string> Attempts::Failing() const {
  std::set<std::string> failing;
  for (const auto& [gang, failure] : failed_) {
    if (failure.times > kMayPass) failing.insert(gang);
  }
  return failing;
}

absl::Time Attempts::NextDue() const {
  absl::Time next = absl::InfiniteFuture();
  for (const auto& [gang, failure] : failed_) next = std::min(next, failure.due);
  return next;
}

}  // namespace railhead::op::gangs
