// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_OPERATOR_COLLECTOR_PAGE_POLLER_H_
#define RAILHEAD_OPERATOR_COLLECTOR_PAGE_POLLER_H_

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kube/work_queue.h"
#include "operator/collector/verdict_counts.h"
#include "operator/verdict/facts.h"

namespace railhead::op {

// What a pod has answered so far.
struct PageAnswer {
  bool asked = false;
  bool answered = false;                                 // once, with a page that can be read
  std::shared_ptr<const verdict::RuntimeReport> report;  // the last; null when there is none
};

// Asks running pods for their metrics pages, again and again: every two seconds in a pod's first
// minute, then every fifteen; one that does not answer in time, every minute.
class PagePoller {
 public:
  // As FetchPage; called by several threads.
  using Fetch = std::function<absl::StatusOr<std::string>(const std::string& address, int port,
                                                          absl::Duration timeout)>;
  using Pod = std::shared_ptr<const verdict::PodFacts>;
  using PodOf = std::function<Pod(const std::string& key)>;

  // `pod_of`: the pod of this moment, null when there is none. Pods are asked only while `leads`.
  // `on_news` is told the key of a pod that has answered otherwise than before, or not, by Run's
  // threads. `now` is the time of day.
  PagePoller(PodOf pod_of, Fetch fetch, std::function<bool()> leads,
             std::function<absl::Time()> now, std::function<void(const std::string& key)> on_news);

  // Works until ShutDown; may be called by several threads, each of which asks one pod at a time.
  void Run();
  void ShutDown();

  // What is below is thread-safe and brief.

  // The pod is to be asked as soon as possible, where it runs and has a page.
  void Follow(const std::string& key);
  // The pod is gone, or does not run any more.
  void Forget(const std::string& key);
  PageAnswer Get(const std::string& key) const;
  PageCounts Counts() const;

 private:
  struct Entry {
    PageAnswer answer;
    int failures = 0;  // in a row
  };

  // Asks one pod. When to ask it again; nothing when not.
  std::optional<absl::Duration> Ask(const std::string& key);
  // Whether it is news. Nothing when the pod has gone meanwhile.
  std::optional<bool> Store(const std::string& key, const verdict::PodFacts& pod,
                            absl::StatusOr<verdict::RuntimeReport> report);

  const PodOf pod_of_;
  const Fetch fetch_;
  const std::function<bool()> leads_;
  const std::function<absl::Time()> now_;
  const std::function<void(const std::string& key)> on_news_;
  kube::WorkQueue queue_;  // keys of pods

  mutable std::mutex mutex_;              // guards all below
  std::map<std::string, Entry> entries_;  // by key
  PageCounts counts_;
};

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_COLLECTOR_PAGE_POLLER_H_
