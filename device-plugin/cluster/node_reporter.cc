// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/cluster/node_reporter.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "device-plugin/cluster/node_facts.h"
#include "kube/client.h"
#include "kube/elements.h"
#include "kube/events.h"
#include "kube/json.h"
#include "kube/monotonic.h"

namespace railhead::device_plugin {
namespace {

using kube::Json;

constexpr size_t kMaxQueued = 100;

std::string Stamp(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", time, absl::UTCTimeZone());
}

// A retry may succeed, while a different request would not.
bool IsOutage(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
         absl::IsCancelled(status);
}

}  // namespace

kube::ObjectRef FeatureOf(const std::string& space, const std::string& node) {
  return {"nfd.k8s-sigs.io/v1alpha1", "nodefeatures", space, absl::StrCat("railhead-", node)};
}

NodeReporter::NodeReporter(Options options, kube::Api* api)
    : options_(std::move(options)),
      api_(api),
      events_(api, kFieldManager, options_.node, absl::Now),
      thread_([this] { Run(); }) {}

NodeReporter::~NodeReporter() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void NodeReporter::Publish(const NodeFacts& facts) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (wanted_ == facts) return;
    wanted_ = facts;
    up_to_date_ = false;
  }
  changed_.notify_all();
}

void NodeReporter::Tell(kube::Event event) {
  if (event.kind.empty()) {
    event.api = "v1";
    event.kind = "Node";
    event.name = options_.node;
    event.uid = options_.node;
  }
  if (!event.at.has_value()) event.at = absl::Now();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (queue_.size() == kMaxQueued) queue_.pop_front();
    queue_.push_back(std::move(event));
    up_to_date_ = false;
  }
  changed_.notify_all();
}

bool NodeReporter::UpToDate() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return up_to_date_;
}

bool NodeReporter::Flush(absl::Duration limit) {
  std::unique_lock<std::mutex> lock(mutex_);
  return changed_.wait_for(lock, absl::ToChronoMilliseconds(limit), [this] { return up_to_date_; });
}

void NodeReporter::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  absl::Duration retry = options_.first_retry;
  absl::Time not_before = absl::InfinitePast();
  absl::Time resync_at = absl::InfiniteFuture();
  const auto sleep_until = [&](absl::Time moment) {
    const absl::Duration rest = std::min(moment - kube::MonotonicNow(), absl::Hours(1));
    changed_.wait_for(lock, absl::ToChronoMilliseconds(rest) + std::chrono::milliseconds(1));
  };
  while (!stop_) {
    const absl::Time now = kube::MonotonicNow();
    if (now >= resync_at) written_.reset();
    if (queue_.empty() && wanted_ == written_) {
      up_to_date_ = true;
      changed_.notify_all();
      sleep_until(resync_at);
    } else if (now < not_before) {
      sleep_until(not_before);
    } else {
      const absl::Status status = Work(lock);
      Told(status);
      not_before = kube::MonotonicNow() + (status.ok() ? options_.pause : retry);
      retry = status.ok() ? options_.first_retry : std::min(2 * retry, options_.last_retry);
      if (status.ok()) resync_at = kube::MonotonicNow() + options_.resync;
    }
  }
}

absl::Status NodeReporter::Work(std::unique_lock<std::mutex>& lock) {
  absl::Status result;
  const std::optional<NodeFacts> facts = wanted_;
  // After a failure it is unknown which part was written.
  const std::optional<NodeFacts> before = std::exchange(written_, std::nullopt);
  std::deque<kube::Event> events = std::exchange(queue_, {});
  lock.unlock();
  if (facts.has_value() && facts != before) {
    result.Update(WriteFacts(*facts));
    if (!before || facts->condition != before->condition) {
      result.Update(WriteCondition(facts->condition));
    }
    if (!before || facts->labels != before->labels) result.Update(WriteFeature(*facts));
  }
  const bool is_written = result.ok();
  while (!events.empty()) {
    const absl::Status told = events_.Record(events.front());
    if (IsOutage(told)) {
      result.Update(told);
      break;
    }
    // Events that are rejected or over the limit are dropped: a retry would fail too.
    if (!absl::IsResourceExhausted(told)) result.Update(told);
    events.pop_front();
  }
  lock.lock();
  if (is_written) written_ = facts;
  queue_.insert(queue_.begin(), events.begin(), events.end());
  while (queue_.size() > kMaxQueued) queue_.pop_front();
  return result;
}

absl::Status NodeReporter::WriteFacts(const NodeFacts& facts) {
  Json metadata = {{"name", options_.node}};
  if (!facts.labels.empty()) metadata["labels"] = facts.labels;
  if (!facts.annotation.empty()) {
    metadata["annotations"][fabric::kNodeFactsAnnotation] = facts.annotation;
  }
  if (!facts.rails_in_use.empty()) {
    metadata["annotations"][fabric::kRailsInUseAnnotation] = facts.rails_in_use;
  }
  return kube::Apply(*api_, {"v1", "nodes", "", options_.node}, kFieldManager,
                     {{"apiVersion", "v1"}, {"kind", "Node"}, {"metadata", metadata}})
      .status();
}

absl::Status NodeReporter::WriteCondition(const std::optional<RailsCondition>& condition) {
  const std::string now = Stamp(absl::Now());
  Json status = Json::object();
  if (condition.has_value()) {
    const std::string value = condition->ready ? "True" : "False";
    if (!condition_.has_value()) {
      // An earlier agent process may have written it.
      const absl::StatusOr<Json> node = kube::Get(*api_, {"v1", "nodes", "", options_.node});
      if (!node.ok()) return node.status();
      const Json* old = kube::FindCondition(*node, kRailsCondition);
      const bool same = old != nullptr && kube::StringAt(*old, {"status"}) == value;
      condition_since_ = same ? kube::StringAt(*old, {"lastTransitionTime"}) : now;
    } else if (condition_->ready != condition->ready) {
      condition_since_ = now;
    }
    status["conditions"] = {{{"type", kRailsCondition},
                             {"status", value},
                             {"reason", condition->reason},
                             {"message", condition->message},
                             {"lastHeartbeatTime", now},
                             {"lastTransitionTime", condition_since_}}};
  }
  absl::Status written =
      kube::Apply(*api_, {"v1", "nodes", "", options_.node, "status"}, kFieldManager,
                  {{"apiVersion", "v1"},
                   {"kind", "Node"},
                   {"metadata", {{"name", options_.node}}},
                   {"status", status}})
          .status();
  if (written.ok()) condition_ = condition;
  return written;
}

absl::Status NodeReporter::WriteFeature(const NodeFacts& facts) {
  if (options_.pod.empty() || options_.space.empty() || facts.labels.empty()) return {};
  const absl::StatusOr<Json> owner = OwnerReferences();
  if (!owner.ok()) return owner.status();
  Json elements = Json::object();
  for (const auto& [label, value] : facts.labels) {
    elements[std::string(absl::StripPrefix(label, "railhead.io/"))] = value;
  }
  const kube::ObjectRef ref = FeatureOf(options_.space, options_.node);
  const absl::Status written =
      kube::Apply(*api_, ref, kFieldManager,
                  {{"apiVersion", ref.api},
                   {"kind", "NodeFeature"},
                   {"metadata",
                    {{"name", ref.name},
                     {"namespace", options_.space},
                     {"labels", {{"nfd.node.kubernetes.io/node-name", options_.node}}},
                     {"ownerReferences", *owner}}},
                   {"spec",
                    {{"features",
                      {{"flags", Json::object()},
                       {"attributes", {{"railhead.node", {{"elements", elements}}}}},
                       {"instances", Json::object()}}},
                     {"labels", Json::object()}}}})
          .status();
  // A cluster without NFD.
  return absl::IsNotFound(written) ? absl::OkStatus() : written;
}

absl::StatusOr<Json> NodeReporter::OwnerReferences() {
  if (!owner_.has_value()) {
    absl::StatusOr<Json> pod = kube::Get(*api_, {"v1", "pods", options_.space, options_.pod});
    if (!pod.ok()) return pod.status();
    const Json* owners = kube::FindPath(*pod, {"metadata", "ownerReferences"});
    owner_ = owners == nullptr ? Json::array() : *owners;
    for (Json& owner : *owner_) {
      // The pod's controller is not the controller of this object.
      owner.erase("controller");
      // To block the owner's deletion, OpenShift requires a right to its finalizers.
      owner.erase("blockOwnerDeletion");
    }
  }
  return *owner_;
}

void NodeReporter::Told(const absl::Status& status) {
  const std::string error(status.message());
  if (error == last_error_) return;
  if (status.ok()) {
    spdlog::info("publishing the node's facts recovered");
  } else {
    spdlog::warn("cannot publish the node's facts, retrying: {}", error);
  }
  last_error_ = error;
}

}  // namespace railhead::device_plugin
