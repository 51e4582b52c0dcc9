// SPDX-License-Identifier: Apache-2.0
//
// Tells the API server what the agent knows of its node, in a thread of its own: kubelet is served
// whether or not there is an API server.
#ifndef RAILHEAD_DEVICE_PLUGIN_CLUSTER_NODE_REPORTER_H_
#define RAILHEAD_DEVICE_PLUGIN_CLUSTER_NODE_REPORTER_H_

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "device-plugin/cluster/node_facts.h"
#include "kube/client.h"
#include "kube/events.h"
#include "kube/json.h"

namespace railhead::device_plugin {

// Who has said what is said here; server-side apply tells by it what is ours.
inline constexpr char kFieldManager[] = "railhead-device-plugin";

class NodeReporter {
 public:
  struct Options {
    std::string node;
    // The agent's own pod. When both are given, NFD gets the labels too, as a NodeFeature that
    // belongs to the pod's DaemonSet.
    std::string space;
    std::string pod;
    absl::Duration pause = absl::Seconds(2);        // at least, between two reports
    absl::Duration first_retry = absl::Seconds(1);  // doubles from failure to failure
    absl::Duration last_retry = absl::Minutes(1);
    absl::Duration resync = absl::Minutes(10);  // somebody may have changed what we wrote
  };

  // `api` must outlive the reporter.
  NodeReporter(Options options, kube::Api* api);
  // Returns when the call in progress has, and without another one.
  ~NodeReporter();
  NodeReporter(const NodeReporter&) = delete;
  NodeReporter& operator=(const NodeReporter&) = delete;

  // All that follows is thread-safe and does not wait for the server.

  // What is true now. Of what is published while the server is busy, only the last is told.
  void Publish(const NodeFacts& facts);

  // An event with an empty kind is one of the node. Of more than a hundred that wait for the
  // server, the oldest are lost.
  void Tell(kube::Event event);

  // Whether the server has taken all that was published and told.
  bool UpToDate() const;
  // Waits until it has, or `limit` has passed.
  bool Flush(absl::Duration limit);

 private:
  void Run();
  // One round of what is to be done; `lock` is released while the server works.
  absl::Status Work(std::unique_lock<std::mutex>& lock);
  absl::Status WriteFacts(const NodeFacts& facts);
  absl::Status WriteCondition(const std::optional<RailsCondition>& condition);
  absl::Status WriteFeature(const NodeFacts& facts);
  absl::StatusOr<kube::Json> OwnerReferences();
  void Told(const absl::Status& status);

  const Options options_;
  kube::Api* const api_;
  kube::EventRecorder events_;

  mutable std::mutex mutex_;  // guards what follows, up to the thread's own
  std::condition_variable changed_;
  std::optional<NodeFacts> wanted_;
  std::deque<kube::Event> queue_;
  bool up_to_date_ = true;
  bool stop_ = false;

  // The thread's own.
  std::optional<NodeFacts> written_;
  std::optional<RailsCondition> condition_;  // as written, with since when
  std::string condition_since_;
  std::optional<kube::Json> owner_;
  std::string last_error_;

  std::thread thread_;
};

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_CLUSTER_NODE_REPORTER_H_
