// SPDX-License-Identifier: Apache-2.0
//
// Scraper: scrapes running pods periodically, every 2 s in a pod's first minute, then every 15 s,
// or less often if its namespace has thousands. Used by Collector.
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
#include "kube/queue/work_queue.h"
#include "operator/collector/page_answer.h"
#include "operator/collector/verdict_counts.h"
#include "operator/verdict/facts.h"

namespace railhead::op {

// Separate queues and threads serve pods that have just started and pods that hang. So neither pods
// that hang, nor the thousands that a new leader finds, delay others.
class PagePoller {
 public:
  // As AskPod; called concurrently.
  using Fetch = std::function<absl::StatusOr<std::string>(const std::string& address, int port,
                                                          absl::Duration timeout)>;
  using Pod = std::shared_ptr<const verdict::PodFacts>;
  using PodOf = std::function<Pod(const std::string& key)>;

  // `pod_of`: returns the current pod, null if absent. Scrapes only while `leads` returns true.
  // `clock` is monotonic. `on_news` is called on Run's threads with the key of a pod to diagnose.
  PagePoller(PodOf pod_of, Fetch fetch, std::function<bool()> leads,
             std::function<absl::Time()> clock,
             std::function<void(const std::string& key)> on_news);

  // Returns whether the pod runs and has the annotation of its metrics port.
  static bool CanBeAsked(const verdict::PodFacts& pod);

  // Runs until ShutDown. May be called on several threads; each scrapes one pod at a time, of one
  // pace.
  enum class Pace {
    kFirst,    // seen to start; in their first minute
    kUsual,    // have responded, or refused the connection
    kBacklog,  // ran before this replica knew them; not scraped yet
    kSlow,     // timed out last time, or belong to a job whose pods all did
  };
  static constexpr size_t kPaces = 4;
  void Run(Pace pace);
  void ShutDown();

  // Thread-safe from here on; return quickly.

  // Call when the pod has just started, so that its responses are complete from here on.
  void Begin(const std::string& key);
  // Scrapes the pod as soon as possible if it runs and has a metrics port. No effect on slow pods.
  void Follow(const std::string& key);
  // Call when the pod is gone or no longer runs.
  void Forget(const std::string& key);
  // Forgets all pods, since this replica does not know what another leader scraped.
  void ForgetAll();
  PageAnswer Get(const std::string& key) const;
  PageCounts Counts() const;

 private:
  // Entries of a job.
  struct Reach {
    size_t pods = 0;
    bool can_be_reached = false;  // some have responded or refused the connection
    int hung = 0;                 // timeouts before that
  };
  using Jobs = std::map<std::string, Reach>;  // by key
  // Entries of a namespace.
  struct Space {
    std::array<size_t, kPaces> of_pace = {};
    size_t pods = 0;
    size_t bytes = 0;
  };
  using Spaces = std::map<std::string, Space>;  // by name
  struct Entry {
    PageRecord record;
    Pace pace = Pace::kBacklog;
    bool from_start = false;
    bool asked = false;
    absl::Time began;  // or was found
    Jobs::iterator job;
    Spaces::iterator space;
    size_t bytes = 0;  // of its report
  };
  using Entries = std::map<std::string, Entry>;  // by key

  kube::WorkQueue& QueueOf(Pace pace) { return *queues_.at(static_cast<size_t>(pace)); }
  void Ask(const std::string& key, Pace pace);
  // The following need mutex_. Store() returns false if the pod is gone or was replaced. Else it
  // sets the delay until the next scrape, and whether there is news.
  bool Store(const std::string& key, const verdict::PodFacts& pod,
             absl::StatusOr<verdict::RuntimeReport> report, bool hung, absl::Duration& again,
             bool& news);
  Entry& EntryOf(const std::string& key, const verdict::PodFacts& pod, bool from_start);
  static bool AllHang(const Reach& job);
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
  // Keys of pods, by pace. If a pod is in several queues, all but one drop it.
  std::array<std::unique_ptr<kube::WorkQueue>, kPaces> queues_;

  mutable std::mutex mutex_;  // guards all below
  Entries entries_;
  std::array<size_t, kPaces> of_pace_ = {};  // number of entries
  Jobs jobs_;
  Spaces spaces_;
  size_t bytes_ = 0;  // of all entries
  PageCounts counts_;
  ListPool<verdict::GivenRail> given_;
  ListPool<verdict::UsedRail> used_;
};

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_COLLECTOR_PAGE_POLLER_H_
