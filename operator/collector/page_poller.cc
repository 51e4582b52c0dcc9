// SPDX-License-Identifier: Apache-2.0
#include "operator/collector/page_poller.h"

#include <algorithm>
#include <utility>

#include "operator/verdict/judge.h"
#include "operator/verdict/page_identity.h"
#include "operator/verdict/runtime_page.h"

namespace railhead::op {
namespace {

using verdict::PodFacts;
using verdict::RuntimeReport;

constexpr absl::Duration kPatience = absl::Seconds(60);  // a wait ends earlier where there is work
constexpr absl::Duration kAnswerWithin = absl::Seconds(2);
constexpr absl::Duration kSoon = absl::Seconds(2);
constexpr absl::Duration kUsually = absl::Seconds(15);
constexpr absl::Duration kSeldom = absl::Minutes(1);
// A question costs about a millisecond of CPU time: 200 a second are a fifth of a core.
constexpr absl::Duration kBetweenQuestions = absl::Milliseconds(5);

bool HasPage(const PodFacts* pod) {
  return pod != nullptr && !pod->finished && pod->running_since != absl::InfiniteFuture() &&
         !pod->address.empty() && pod->metrics_port != 0;
}

}  // namespace

PagePoller::PagePoller(PodOf pod_of, Fetch fetch, std::function<bool()> leads, Clocks clocks,
                       std::function<void(const std::string& key)> on_news)
    : pod_of_(std::move(pod_of)),
      fetch_(std::move(fetch)),
      leads_(std::move(leads)),
      clocks_(std::move(clocks)),
      on_news_(std::move(on_news)),
      quick_(kube::BackoffOptions{}),
      slow_(kube::BackoffOptions{}) {}

void PagePoller::Run(Pace pace) {
  kube::WorkQueue& queue = QueueOf(pace);
  while (!queue.is_shut_down()) {
    const std::optional<std::string> key = queue.Take(kPatience);
    if (!key) continue;
    Ask(*key, pace);
    queue.Finish(*key);
  }
}

void PagePoller::ShutDown() {
  quick_.ShutDown();
  slow_.ShutDown();
}

void PagePoller::Follow(const std::string& key) {
  if (!HasPage(pod_of_(key).get())) return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (const auto at = entries_.find(key);
        at != entries_.end() && at->second.pace == Pace::kSlow) {
      return;  // it is asked when its turn comes
    }
  }
  quick_.Add(key);
}

void PagePoller::Forget(const std::string& key) {
  const std::lock_guard<std::mutex> lock(mutex_);
  entries_.erase(key);
}

void PagePoller::ForgetAll() {
  const std::lock_guard<std::mutex> lock(mutex_);
  entries_.clear();
}

PageAnswer PagePoller::Get(const std::string& key) const {
  const absl::Time now = clocks_.clock();
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto at = entries_.find(key);
  return at == entries_.end() ? PageAnswer() : at->second.record.At(now);
}

PageCounts PagePoller::Counts() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return counts_;
}

void PagePoller::Ask(const std::string& key, Pace pace) {
  const Pod pod = pod_of_(key);
  // Who begins to lead follows all pods anew.
  if (!HasPage(pod.get()) || !leads_()) return;
  size_t followed = 0;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto at = entries_.find(key);
    if ((at == entries_.end() ? Pace::kQuick : at->second.pace) != pace) return;
    followed = entries_.size();
  }
  const absl::StatusOr<std::string> page = fetch_(pod->address, pod->metrics_port, kAnswerWithin);
  absl::StatusOr<RuntimeReport> report =
      page.ok() ? verdict::ParseRuntimePage(*page) : absl::StatusOr<RuntimeReport>(page.status());
  if (report.ok()) {
    if (absl::Status own = verdict::CheckPageIsOf(*report, *pod); !own.ok()) report = own;
  }
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++(report.ok() ? counts_.ok : page.ok() ? counts_.unreadable : counts_.unreachable);
  }
  const bool slow = absl::IsDeadlineExceeded(page.status());
  bool news = false;
  if (!Store(key, *pod, std::move(report), slow, news)) {
    Follow(key);  // there may be another one of that name
    return;
  }
  if (news) on_news_(key);
  if (!leads_()) return;
  if (slow) {
    slow_.AddAfter(key, kSeldom);
  } else if (clocks_.now() - pod->running_since < verdict::kSilence) {
    quick_.AddAfter(key, kSoon);
  } else {
    quick_.AddAfter(key, std::max(kUsually, kBetweenQuestions * static_cast<double>(followed)));
  }
}

bool PagePoller::Store(const std::string& key, const PodFacts& pod,
                       absl::StatusOr<RuntimeReport> report, bool slow, bool& news) {
  const std::lock_guard<std::mutex> lock(mutex_);
  // Forget comes after that has changed: what is stored here will be forgotten.
  const Pod current = pod_of_(key);
  if (!HasPage(current.get()) || current->uid != pod.uid ||
      current->running_since != pod.running_since) {
    return false;
  }
  Entry& entry = entries_[key];
  entry.pace = slow ? Pace::kSlow : Pace::kQuick;
  if (report.ok()) {
    for (verdict::RankReport& rank : report->ranks) {
      rank.given = given_.Share(rank.given);
      rank.used = used_.Share(rank.used);
    }
  }
  const absl::Time now = clocks_.clock();
  news = report.ok() ? entry.record.Answered(*std::move(report), now) : entry.record.Missed(now);
  return true;
}

}  // namespace railhead::op
