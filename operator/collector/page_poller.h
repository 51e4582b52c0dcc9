// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_OPERATOR_COLLECTOR_PAGE_POLLER_H_
#define RAILHEAD_OPERATOR_COLLECTOR_PAGE_POLLER_H_

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
// minute, then every fifteen, or less often where there are thousands. One that lets a question run
// into its deadline is asked every minute, by askers of its own: whoever hangs keeps nobody else
// waiting.
class PagePoller {
 public:
  // As AskPod; called by several threads.
  using Fetch = std::function<absl::StatusOr<std::string>(const std::string& address, int port,
                                                          absl::Duration timeout)>;
  using Pod = std::shared_ptr<const verdict::PodFacts>;
  using PodOf = std::function<Pod(const std::string& key)>;
  // `now` is the time of day, `clock` monotonic.
  struct Clocks {
    std::function<absl::Time()> now;
    std::function<absl::Time()> clock;
  };

  // `pod_of`: the pod of this moment, null when there is none. Pods are asked only while `leads`.
  // `on_news` is told the key of a pod of which there is something new to judge, by Run's threads.
  PagePoller(PodOf pod_of, Fetch fetch, std::function<bool()> leads, Clocks clocks,
             std::function<void(const std::string& key)> on_news);

  // Works until ShutDown; may be called by several threads, each of which asks one pod at a time,
  // those that were slow the last time or the others.
  enum class Pace { kQuick, kSlow };
  void Run(Pace pace);
  void ShutDown();

  // What is below is thread-safe and brief.

  // The pod is to be asked as soon as possible, where it runs and has a page; not one that is slow.
  void Follow(const std::string& key);
  // The pod is gone, or does not run any more.
  void Forget(const std::string& key);
  // All of them: what another replica has asked meanwhile is not known here.
  void ForgetAll();
  PageAnswer Get(const std::string& key) const;
  PageCounts Counts() const;

 private:
  kube::WorkQueue& QueueOf(Pace pace) { return pace == Pace::kSlow ? slow_ : quick_; }
  void Ask(const std::string& key, Pace pace);
  // False when the pod has gone meanwhile, or is another one.
  bool Store(const std::string& key, const verdict::PodFacts& pod,
             absl::StatusOr<verdict::RuntimeReport> report, bool slow, bool& news);

  const PodOf pod_of_;
  const Fetch fetch_;
  const std::function<bool()> leads_;
  const Clocks clocks_;
  const std::function<void(const std::string& key)> on_news_;
  kube::WorkQueue quick_;  // keys of pods
  kube::WorkQueue slow_;   // the same; of a pod that is in both, one lets go

  struct Entry {
    PageRecord record;
    Pace pace = Pace::kQuick;
  };
  mutable std::mutex mutex_;              // guards all below
  std::map<std::string, Entry> entries_;  // by key
  PageCounts counts_;
  verdict::ListPool<verdict::GivenRail> given_;
  verdict::ListPool<verdict::UsedRail> used_;
};

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_COLLECTOR_PAGE_POLLER_H_
