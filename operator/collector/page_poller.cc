// SPDX-License-Identifier: Apache-2.0
#include "operator/collector/page_poller.h"

#include <algorithm>
#include <utility>

#include "kube/monotonic.h"
#include "operator/cluster/fair_share.h"
#include "operator/collector/job_index.h"
#include "operator/verdict/judge.h"
#include "operator/verdict/learned.h"
#include "operator/verdict/page_identity.h"
#include "operator/verdict/runtime_page.h"

namespace railhead::op {
namespace {

using verdict::PodFacts;
using verdict::RuntimeReport;

constexpr absl::Duration kPagePatience =
    absl::Seconds(60);  // a wait ends earlier where there is work
constexpr absl::Duration kAnswerWithin = absl::Seconds(2);
constexpr absl::Duration kSoon = absl::Seconds(2);
constexpr absl::Duration kUsually = absl::Seconds(15);
constexpr absl::Duration kSeldom = absl::Minutes(1);
// Retry interval in a pod's first minute, when its network may not be ready.
constexpr absl::Duration kSlowAtFirst = absl::Seconds(10);
// A scrape costs about a millisecond of CPU time: 200 per second use a fifth of a core.
constexpr absl::Duration kBetweenQuestions = absl::Milliseconds(5);
// A pod first scraped later than this may have reported to another replica.
constexpr absl::Duration kAtTheStart = absl::Seconds(30);
// After this number of timeouts and no response, the job's other pods are expected to hang.
constexpr int kHungAreAll = 4;
// Limits of all stored reports, which users control. 20,000 pods with 8 rails need 8 MiB.
constexpr FairShare kBytes = {
    .most = 32U << 20U, .most_of_one = 16U << 20U, .reserve = 8U << 20U, .small = 256U << 10U};

bool HasPage(const PodFacts* pod) { return pod != nullptr && PagePoller::CanBeAsked(*pod); }

}  // namespace

PagePoller::PagePoller(PodOf pod_of, Fetch fetch, std::function<bool()> leads,
                       std::function<absl::Time()> clock,
                       std::function<void(const std::string& key)> on_news)
    : pod_of_(std::move(pod_of)),
      fetch_(std::move(fetch)),
      leads_(std::move(leads)),
      clock_(std::move(clock)),
      on_news_(std::move(on_news)) {
  for (auto& queue : queues_) {
    queue = std::make_unique<kube::WorkQueue>(kube::BackoffOptions{}, kube::SystemRandom(),
                                              kube::MonotonicNow, kube::NamespaceOfItem);
  }
}

bool PagePoller::CanBeAsked(const PodFacts& pod) {
  return !pod.finished && pod.running_since != absl::InfiniteFuture() && !pod.address.empty() &&
         pod.metrics_port != 0;
}

void PagePoller::Run(Pace pace) {
  kube::WorkQueue& queue = QueueOf(pace);
  while (!queue.is_shut_down()) {
    const std::optional<std::string> key = queue.Take(kPagePatience);
    if (!key) continue;
    Ask(*key, pace);
    queue.Finish(*key);
  }
}

void PagePoller::ShutDown() {
  for (const auto& queue : queues_) queue->ShutDown();
}

void PagePoller::Begin(const std::string& key) {
  const Pod pod = pod_of_(key);
  // Another replica, if any, scrapes it now.
  if (!HasPage(pod.get()) || !leads_()) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (const auto at = entries_.find(key); at != entries_.end()) Erase(at);
  EntryOf(key, *pod, true);
}

void PagePoller::Follow(const std::string& key) {
  const Pod pod = pod_of_(key);
  if (!HasPage(pod.get()) || !leads_()) return;
  Pace pace;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const Entry& entry = EntryOf(key, *pod, false);
    if (entry.pace == Pace::kSlow && entry.asked) return;  // scraped when its turn comes
    pace = entry.pace;
  }
  QueueOf(pace).Add(key);
}

void PagePoller::Forget(const std::string& key) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (const auto at = entries_.find(key); at != entries_.end()) Erase(at);
}

void PagePoller::ForgetAll() {
  for (const auto& queue : queues_) queue->Clear();
  const std::lock_guard<std::mutex> lock(mutex_);
  entries_.clear();
  of_pace_ = {};
  jobs_.clear();
  spaces_.clear();
  bytes_ = 0;
}

PageAnswer PagePoller::Get(const std::string& key) const {
  const absl::Time now = clock_();
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto at = entries_.find(key);
  if (at == entries_.end()) return {};
  PageAnswer answer = at->second.record.At(now);
  answer.from_start = at->second.from_start;
  return answer;
}

PageCounts PagePoller::Counts() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return counts_;
}

PagePoller::Entry& PagePoller::EntryOf(const std::string& key, const PodFacts& pod,
                                       bool from_start) {
  const auto [at, added] = entries_.try_emplace(key);
  Entry& entry = at->second;
  if (!added) return entry;
  entry.from_start = from_start;
  entry.began = clock_();
  entry.job = jobs_.try_emplace(JobOf(pod).Key()).first;
  entry.space = spaces_.try_emplace(pod.space).first;
  ++entry.job->second.pods;
  entry.pace = from_start ? Pace::kFirst : Pace::kBacklog;
  Count(entry.pace, entry, 1);
  return entry;
}

bool PagePoller::AllHang(const Reach& job) {
  return !job.can_be_reached && job.hung >= kHungAreAll;
}

void PagePoller::Erase(Entries::iterator at) {
  SetBytes(0, at->second);
  Count(at->second.pace, at->second, -1);
  if (const auto job = at->second.job; --job->second.pods == 0) jobs_.erase(job);
  entries_.erase(at);
}

void PagePoller::SetPace(Pace pace, Entry& entry) {
  Count(pace, entry, 1);
  Count(entry.pace, entry, -1);
  entry.pace = pace;
}

void PagePoller::Count(Pace pace, const Entry& entry, int change) {
  const auto index = static_cast<size_t>(pace);
  Space& space = entry.space->second;
  of_pace_.at(index) += static_cast<size_t>(change);
  space.of_pace.at(index) += static_cast<size_t>(change);
  space.pods += static_cast<size_t>(change);
  if (space.pods == 0) spaces_.erase(entry.space);
}

void PagePoller::SetBytes(size_t bytes, Entry& entry) {
  entry.space->second.bytes += bytes - entry.bytes;
  bytes_ += bytes - entry.bytes;
  entry.bytes = bytes;
}

void PagePoller::Ask(const std::string& key, Pace pace) {
  const Pod pod = pod_of_(key);
  // A new leader follows all pods again.
  if (!HasPage(pod.get()) || !leads_()) return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    Entry& entry = EntryOf(key, *pod, false);
    if (!entry.asked && AllHang(entry.job->second)) SetPace(Pace::kSlow, entry);
    if (entry.pace != pace) {
      if (!entry.asked) QueueOf(entry.pace).Add(key);
      return;
    }
    if (!entry.asked && clock_() - entry.began > kAtTheStart) entry.from_start = false;
    entry.asked = true;
  }
  const absl::StatusOr<std::string> page = fetch_(pod->address, pod->metrics_port, kAnswerWithin);
  absl::StatusOr<RuntimeReport> report =
      page.ok() ? verdict::ParseRuntimePage(*page) : absl::StatusOr<RuntimeReport>(page.status());
  if (report.ok()) {
    if (absl::Status own = verdict::CheckPageIsOf(*report, *pod); !own.ok()) report = own;
  }
  const bool hung = absl::IsDeadlineExceeded(page.status());
  absl::Duration again;
  bool news = false;
  bool stored = false;
  {
    // At once, so that whatever is counted can be read with Get.
    const std::lock_guard<std::mutex> lock(mutex_);
    ++(report.ok() ? counts_.ok : page.ok() ? counts_.unreadable : counts_.unreachable);
    stored = Store(key, *pod, std::move(report), hung, again, news);
  }
  if (!stored) {
    Follow(key);  // there may be another one of that name
    return;
  }
  if (news) on_news_(key);
  if (!leads_()) return;
  Pace next = pace;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto at = entries_.find(key);
    if (at == entries_.end()) return;  // it has just ended
    next = at->second.pace;
  }
  QueueOf(next).AddAfter(key, again);
}

bool PagePoller::Store(const std::string& key, const PodFacts& pod,
                       absl::StatusOr<RuntimeReport> report, bool hung, absl::Duration& again,
                       bool& news) {
  // Forget comes after that has changed: what is stored here will be forgotten.
  const Pod current = pod_of_(key);
  if (!HasPage(current.get()) || current->uid != pod.uid ||
      current->running_since != pod.running_since) {
    return false;
  }
  Entry& entry = EntryOf(key, pod, false);
  entry.asked = true;
  const absl::Time now = clock_();
  if (report.ok()) {
    Keep(*std::move(report), now, entry, news);
  } else {
    news = entry.record.Missed(now);
  }
  Reach& reach = entry.job->second;
  reach.can_be_reached = reach.can_be_reached || !hung;
  if (hung) reach.hung = std::min(reach.hung + 1, kHungAreAll);
  SetPace(hung                                                        ? Pace::kSlow
          : entry.from_start && now - entry.began < verdict::kSilence ? Pace::kFirst
                                                                      : Pace::kUsual,
          entry);
  again = PauseOf(entry);
  return true;
}

void PagePoller::Keep(RuntimeReport report, absl::Time now, Entry& entry, bool& news) {
  for (verdict::RankReport& rank : report.ranks) {
    rank.given = given_.Share(rank.given);
    rank.used = used_.Share(rank.used);
  }
  news = entry.record.Answered(std::move(report), now);
  if (!news) return;
  const PageAnswer answer = entry.record.At(now);
  size_t bytes = answer.report == nullptr ? 0 : verdict::BytesOf(*answer.report);
  if (answer.learned != nullptr && answer.learned != answer.report) {
    bytes += verdict::BytesOf(*answer.learned);
  }
  SetBytes(0, entry);
  if (!kBytes.Allows(bytes_, entry.space->second.bytes, bytes)) {
    // As if it had reported to another replica: its report is unknown.
    bytes = 0;
    entry.from_start = false;
    entry.record = PageRecord();
  }
  SetBytes(bytes, entry);
}

// Returns the delay until the next scrape: at least the interval of its pace, and longer if all
// pods together would exceed the scrape rate. Then namespaces get equal shares, and one with a few
// pods does not wait for thousands of another.
absl::Duration PagePoller::PauseOf(const Entry& entry) const {
  const auto pace = static_cast<size_t>(entry.pace);
  const size_t share = entry.space->second.of_pace.at(pace) * spaces_.size();
  const absl::Duration fair =
      kBetweenQuestions * static_cast<double>(std::min(of_pace_.at(pace), share));
  switch (entry.pace) {
    case Pace::kFirst:
      return std::max(kSoon, fair);
    case Pace::kSlow: {
      const bool at_first = entry.from_start && clock_() - entry.began < verdict::kSilence;
      return std::max(at_first ? kSlowAtFirst : kSeldom, fair);
    }
    case Pace::kUsual:
    case Pace::kBacklog:
      break;
  }
  return std::max(kUsually, fair);
}

}  // namespace railhead::op
