// SPDX-License-Identifier: Apache-2.0
//
// Writes the agent's knowledge of its node to the API server, on a separate thread: kubelet is
// served with or without an API server. Used by Agent.
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

// Field manager of server-side apply.
inline constexpr char kFieldManager[] = "railhead-device-plugin";

// The NodeFeature of a node, for Node Feature Discovery.
kube::ObjectRef FeatureOf(const std::string& space, const std::string& node);

class NodeReporter {
 public:
  struct Options {
    std::string node;
    // The agent's own pod. If both are set, NFD also gets the labels, as a NodeFeature owned by the
    // pod's DaemonSet.
    std::string space;
    std::string pod;
    absl::Duration pause = absl::Seconds(2);        // minimum time between reports
    absl::Duration first_retry = absl::Seconds(1);  // doubles with each failure
    absl::Duration last_retry = absl::Minutes(1);
    absl::Duration resync = absl::Minutes(10);  // rewrites what others may have changed
  };

  // `api` must outlive the reporter.
  NodeReporter(Options options, kube::Api* api);
  // Returns after the call in progress, without another one.
  ~NodeReporter();
  NodeReporter(const NodeReporter&) = delete;
  NodeReporter& operator=(const NodeReporter&) = delete;

  // All following methods are thread-safe and do not wait for the server.

  // Sets the current facts. If the server is slow, only the last ones are written.
  void Publish(const NodeFacts& facts);

  // Queues an event that happens now, unless it has a time; an empty kind means the node. Above a
  // hundred queued events, the oldest are dropped.
  void Tell(kube::Event event);

  // Returns true if the server has accepted everything published and queued.
  bool UpToDate() const;
  // Waits for that, at most `limit`.
  bool Flush(absl::Duration limit);

 private:
  void Run();
  // Performs one round of writes; releases `lock` during calls of the server.
  absl::Status Work(std::unique_lock<std::mutex>& lock);
  absl::Status WriteFacts(const NodeFacts& facts);
  absl::Status WriteCondition(const std::optional<RailsCondition>& condition);
  absl::Status WriteFeature(const NodeFacts& facts);
  absl::StatusOr<kube::Json> OwnerReferences();
  void Told(const absl::Status& status);

  const Options options_;
  kube::Api* const api_;
  kube::EventRecorder events_;

  mutable std::mutex mutex_;  // guards all up to the thread's own members
  std::condition_variable changed_;
  std::optional<NodeFacts> wanted_;
  std::deque<kube::Event> queue_;
  bool up_to_date_ = true;
  bool stop_ = false;

  // Used by the thread only.
  std::optional<NodeFacts> written_;
  std::optional<RailsCondition> condition_;  // as written, with its time
  std::string condition_since_;
  std::optional<kube::Json> owner_;
  std::string last_error_;

  std::thread thread_;
};

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_CLUSTER_NODE_REPORTER_H_
