// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_OPERATOR_COLLECTOR_PAGE_POLLER_H_
#define RAILHEAD_OPERATOR_COLLECTOR_PAGE_POLLER_H_

#include <array>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kube/work_queue.h"
#include "operator/collector/page_answer.h"
#include "operator/collector/verdict_counts.h"
#include "operator/verdict/facts.h"

namespace railhead::op {

// Asks running pods for their metrics pages, again and again: every two seconds in a pod's first
// minute, then every fifteen, or less often where its namespace has thousands. Who keeps askers
// waiting has askers of its own, and so have those that have just started: neither pods that hang,
// nor the thousands that a new leader finds, come before them.
class PagePoller {
 public:
  // As AskPod; called by several threads.
  using Fetch = std::function<absl::StatusOr<std::string>(const std::string& address, int port,
                                                          absl::Duration timeout)>;
  using Pod = std::shared_ptr<const verdict::PodFacts>;
  using PodOf = std::function<Pod(const std::string& key)>;

  // `pod_of`: the pod of this moment, null when there is none. Pods are asked only while `leads`.
  // `clock` is monotonic. `on_news` is told the key of a pod of which there is something new to
  // judge, by Run's threads.
  PagePoller(PodOf pod_of, Fetch fetch, std::function<bool()> leads,
             std::function<absl::Time()> clock,
             std::function<void(const std::string& key)> on_news);

  // Whether it runs, and is annotated with a page.
  static bool CanBeAsked(const verdict::PodFacts& pod);

  // Works until ShutDown; may be called by several threads, each of which asks one pod at a time,
  // of one kind.
  enum class Pace {
    kFirst,    // those that were seen to start, in their first minute
    kUsual,    // those that have answered, or refused at once
    kBacklog,  // those that ran before they were known here, and were not asked yet
    kSlow,     // those that hung the last time, and those of jobs of which all did
  };
  static constexpr size_t kPaces = 4;
  void Run(Pace pace);
  void ShutDown();

  // What is below is thread-safe and brief.

  // The pod has just started: what it says from now on is all that it has said.
  void Begin(const std::string& key);
  // The pod is to be asked as soon as possible, where it runs and has a page; not one that is slow.
  void Follow(const std::string& key);
  // The pod is gone, or does not run any more.
  void Forget(const std::string& key);
  // All of them: what another replica has asked meanwhile is not known here.
  void ForgetAll();
  PageAnswer Get(const std::string& key) const;
  PageCounts Counts() const;

 private:
  struct Entry {
    PageRecord record;
    Pace pace = Pace::kBacklog;
    bool from_start = false;
    bool asked = false;
    absl::Time began;  // or was found
    std::string job;
    std::string space;
    size_t bytes = 0;  // of what it said
  };
  using Entries = std::map<std::string, Entry>;  // by key

  kube::WorkQueue& QueueOf(Pace pace) { return *queues_.at(static_cast<size_t>(pace)); }
  void Ask(const std::string& key, Pace pace);
  // With mutex_ held:
  // False when the pod has gone meanwhile, or is another one. Else when it is asked again, and
  // whether there is news.
  bool Store(const std::string& key, const verdict::PodFacts& pod,
             absl::StatusOr<verdict::RuntimeReport> report, bool hung, absl::Duration& again,
             bool& news);
  Entry& EntryOf(const std::string& key, const verdict::PodFacts& pod, bool from_start);
  bool AllHang(const std::string& job) const;
  void Erase(Entries::iterator at);
  void Keep(verdict::RuntimeReport report, absl::Time now, Entry& entry, bool& news);
  void SetPace(Pace pace, Entry& entry);
  void Count(Pace pace, const Entry& entry, int change);
  void SetBytes(size_t bytes, Entry& entry);
  absl::Duration PauseOf(const Entry& entry) const;

  const PodOf pod_of_;
  const Fetch fetch_;
  const std::function<bool()> leads_;
  const std::function<absl::Time()> clock_;
  const std::function<void(const std::string& key)> on_news_;
  // Keys of pods, by pace; of a pod that is in several, all but one let go.
  std::array<std::unique_ptr<kube::WorkQueue>, kPaces> queues_;

  mutable std::mutex mutex_;  // guards all below
  Entries entries_;
  std::array<size_t, kPaces> of_pace_ = {};  // how many entries
  // Of a job that has entries.
  struct Reach {
    size_t pods = 0;
    bool can_be_reached = false;  // some have answered or refused
    int hung = 0;                 // until then
  };
  std::map<std::string, Reach> jobs_;
  // Of a namespace that has entries.
  struct Space {
    std::array<size_t, kPaces> of_pace = {};
    size_t pods = 0;
    size_t bytes = 0;
  };
  std::map<std::string, Space> spaces_;
  size_t bytes_ = 0;  // of all entries
  PageCounts counts_;
  verdict::ListPool<verdict::GivenRail> given_;
  verdict::ListPool<verdict::UsedRail> used_;
};

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_COLLECTOR_PAGE_POLLER_H_
