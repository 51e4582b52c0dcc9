// SPDX-License-Identifier: Apache-2.0
#include "operator/collector/page_poller.h"

#include <memory>
#include <utility>

#include "operator/verdict/judge.h"
#include "operator/verdict/runtime_page.h"

namespace railhead::op {
namespace {

using verdict::PodFacts;
using verdict::RuntimeReport;

constexpr absl::Duration kPatience = absl::Seconds(60);  // a wait ends earlier where there is work
constexpr absl::Duration kAnswerWithin = absl::Seconds(2);
constexpr absl::Duration kSoon = absl::Seconds(2);
constexpr absl::Duration kUsually = absl::Seconds(15);
// One that never answers costs as much time as many that do.
constexpr absl::Duration kSeldom = absl::Minutes(1);
// A pod that misses one question may be busy; one that misses three has ended its runtime.
constexpr int kForgetAfter = 3;

bool HasPage(const PodFacts* pod) {
  return pod != nullptr && !pod->finished && pod->running_since != absl::InfiniteFuture() &&
         !pod->address.empty() && pod->metrics_port != 0;
}

}  // namespace

PagePoller::PagePoller(PodOf pod_of, Fetch fetch, std::function<bool()> leads,
                       std::function<absl::Time()> now,
                       std::function<void(const std::string& key)> on_news)
    : pod_of_(std::move(pod_of)),
      fetch_(std::move(fetch)),
      leads_(std::move(leads)),
      now_(std::move(now)),
      on_news_(std::move(on_news)),
      queue_(kube::BackoffOptions{}) {}

void PagePoller::Run() {
  while (!queue_.is_shut_down()) {
    const std::optional<std::string> key = queue_.Take(kPatience);
    if (!key) continue;
    if (const std::optional<absl::Duration> again = Ask(*key)) queue_.AddAfter(*key, *again);
    queue_.Finish(*key);
  }
}

void PagePoller::ShutDown() { queue_.ShutDown(); }

void PagePoller::Follow(const std::string& key) {
  if (HasPage(pod_of_(key).get())) queue_.Add(key);
}

void PagePoller::Forget(const std::string& key) {
  const std::lock_guard<std::mutex> lock(mutex_);
  entries_.erase(key);
}

PageAnswer PagePoller::Get(const std::string& key) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto at = entries_.find(key);
  return at == entries_.end() ? PageAnswer() : at->second.answer;
}

PageCounts PagePoller::Counts() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return counts_;
}

std::optional<absl::Duration> PagePoller::Ask(const std::string& key) {
  const Pod pod = pod_of_(key);
  // Who begins to lead follows all pods anew.
  if (!HasPage(pod.get()) || !leads_()) return std::nullopt;
  const absl::StatusOr<std::string> page = fetch_(pod->address, pod->metrics_port, kAnswerWithin);
  absl::StatusOr<RuntimeReport> report =
      page.ok() ? verdict::ParseRuntimePage(*page) : absl::StatusOr<RuntimeReport>(page.status());
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++(report.ok() ? counts_.ok : page.ok() ? counts_.unreadable : counts_.unreachable);
  }
  const std::optional<bool> news = Store(key, *pod, std::move(report));
  if (!news) return absl::ZeroDuration();  // there may be another one of that name
  if (*news) on_news_(key);
  if (now_() - pod->running_since < verdict::kSilence) return kSoon;
  return absl::IsDeadlineExceeded(page.status()) ? kSeldom : kUsually;
}

std::optional<bool> PagePoller::Store(const std::string& key, const PodFacts& pod,
                                      absl::StatusOr<RuntimeReport> report) {
  const std::lock_guard<std::mutex> lock(mutex_);
  // Forget comes after that has changed: what is stored here will be forgotten.
  const Pod current = pod_of_(key);
  if (!HasPage(current.get()) || current->uid != pod.uid) return std::nullopt;
  auto& [answer, failures] = entries_[key];
  answer.asked = true;
  if (report.ok()) {
    failures = 0;
    const bool news = !answer.answered || answer.report == nullptr || *answer.report != *report;
    answer.answered = true;
    if (news) answer.report = std::make_shared<const RuntimeReport>(*std::move(report));
    return news;
  }
  ++failures;
  // Its silence is judged by how long it lasts.
  if (!answer.answered) return true;
  const bool news = failures == kForgetAfter && answer.report != nullptr;
  if (news) answer.report = nullptr;
  return news;
}

}  // namespace railhead::op
