// SPDX-License-Identifier: Apache-2.0
//
// Test fixture: a gang controller with a fake API server and an adjustable clock.
#ifndef RAILHEAD_OPERATOR_GANGS_TESTING_CONTROLLER_SCENE_H_
#define RAILHEAD_OPERATOR_GANGS_TESTING_CONTROLLER_SCENE_H_

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "kube/json.h"
#include "kube/monotonic.h"
#include "kube/testing/fake_api.h"
#include "kube/testing/soon.h"
#include "operator/cluster/cluster_caches.h"
#include "operator/control/gang_controller.h"
#include "operator/gangs/testing/small_cluster.h"
#include "operator/objects/names.h"

namespace railhead::op::gangs::testing {

// An API server that can reject calls. After `good` patches of pods, no patch gets a response; the
// first `lost` of these take effect.
class FailingApi final : public kube::Api {
 public:
  explicit FailingApi(kube::Api* api) : api_(api) {}
  absl::StatusOr<kube::Json> Call(const kube::ApiRequest& request) override {
    std::function<absl::Status(const kube::ApiRequest&)> refuse;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      refuse = refuse_;
    }
    if (refuse != nullptr) {
      if (absl::Status refused = refuse(request); !refused.ok()) return refused;
    }
    if (request.method != "PATCH" || --good >= 0) return api_->Call(request);
    if (--lost >= 0) api_->Call(request).IgnoreError();
    return absl::UnavailableError("no answer");
  }
  absl::Status Stream(const kube::StreamRequest& request,
                      const std::function<absl::Status(absl::string_view)>& on_bytes) override {
    return api_->Stream(request, on_bytes);
  }

  // Passes each later call to `refuse` first, concurrently; OK: the call proceeds.
  void Refuse(std::function<absl::Status(const kube::ApiRequest&)> refuse) {
    const std::lock_guard<std::mutex> lock(mutex_);
    refuse_ = std::move(refuse);
  }

  std::atomic<int> good{1'000'000};
  std::atomic<int> lost{0};

 private:
  kube::Api* const api_;
  std::mutex mutex_;
  std::function<absl::Status(const kube::ApiRequest&)> refuse_;
};

class ControllerScene : public ::testing::Test {
 protected:
  void SetUp() override {
    for (int i = 0; i < 8; ++i) {
      const std::string name = absl::StrCat("n", i);
      api_.Put({"v1", "nodes", "", name}, NodeObject(name, "s0", absl::StrCat("l", i / 4)));
    }
  }
  void TearDown() override { Stop(); }

  // The fake server lists objects directly below the collection.
  static kube::ObjectRef Pod(const std::string& name) { return {"v1", "pods", "", name}; }
  void PutPod(const PodSpec& spec) {
    kube::Json pod = PodObject(spec);
    pod["metadata"].erase("namespace");
    pod["metadata"]["uid"] = absl::StrCat("u", ++serial_);
    api_.Put(Pod(spec.name), pod);
  }
  void PutJob(const std::string& name, int pods, int from = 0) {
    for (int i = from; i < pods; ++i) {
      PutPod({.name = absl::StrCat(name, "-", i),
              .gang = "true",
              .size = pods,
              .owner = name,
              .index = i});
    }
  }
  void StartLeading(bool topology = false) {
    caches_ = std::make_unique<ClusterCaches>(
        ClusterCachesOptions{.gangs = true, .topology = topology}, &failing_);
    controller_ = std::make_unique<GangController>(
        GangControllerOptions{.host = "me",
                              .now = [this] { return Now(); },
                              .server_time = [this] { return Now(); },
                              .topology = topology},
        &failing_, caches_.get(), [this] { return leads_.load(); });
    caches_->Start();
    thread_ = std::jthread([this](const std::stop_token& stop) { controller_->Run(stop); });
  }
  void Stop() {
    if (controller_ == nullptr) return;
    caches_->RequestStop();
    thread_.request_stop();
    thread_.join();
    caches_->Join();
    controller_.reset();
    caches_.reset();
  }
  absl::Time Now() const {
    return absl::UnixEpoch() + absl::Seconds(seconds_.load()) + (kube::MonotonicNow() - start_);
  }

  std::string NodeOf(const std::string& pod) const {
    return kube::StringAt(api_.At(Pod(pod)), {"spec", "nodeSelector", kHostname});
  }
  int ReleasedOf(const std::string& job, int pods) const {
    int released = 0;
    for (int i = 0; i < pods; ++i) {
      if (!NodeOf(absl::StrCat(job, "-", i)).empty()) ++released;
    }
    return released;
  }
  // Sets the scheduler's message of an unschedulable pod.
  void Unschedulable(const std::string& name, const std::string& words) {
    kube::Json pod = api_.At(Pod(name));
    pod["status"]["conditions"] = {{{"type", "PodScheduled"},
                                    {"status", "False"},
                                    {"reason", "Unschedulable"},
                                    {"message", words}}};
    api_.Put(Pod(name), pod);
  }
  // Binds a pod to the node in its nodeSelector.
  void Bind(const std::string& name) {
    kube::Json pod = api_.At(Pod(name));
    pod["spec"]["nodeName"] = NodeOf(name);
    pod["status"]["phase"] = "Running";
    api_.Put(Pod(name), pod);
  }
  void BindJob(const std::string& name, int pods) {
    for (int i = 0; i < pods; ++i) Bind(absl::StrCat(name, "-", i));
  }
  void Fail(const std::string& name) {
    kube::Json pod = api_.At(Pod(name));
    pod["status"]["phase"] = "Failed";
    api_.Put(Pod(name), pod);
  }
  // Waits until the controller has acted on everything written so far: adds a later pod and waits
  // until it is sent to a node of its own.
  bool CaughtUp() {
    kube::Json aside = NodeObject("aside", "", "");
    aside["metadata"]["labels"]["test/aside"] = "yes";
    aside["status"]["allocatable"]["rdma/hca"] = "1";
    api_.Put({"v1", "nodes", "", "aside"}, aside);
    const std::string name = absl::StrCat("later-", ++serial_);
    kube::Json pod = PodObject({.name = name, .gang = name, .size = 1, .hcas = 1});
    pod["metadata"].erase("namespace");
    pod["spec"]["nodeSelector"]["test/aside"] = "yes";
    api_.Put(Pod(name), pod);
    const bool seen = kube::testing::Soon([&] { return !NodeOf(name).empty(); });
    api_.Remove(Pod(name));
    return seen;
  }
  bool IsThere(const std::string& name) const {
    for (const kube::Json& pod : api_.In("/api/v1/pods")) {
      if (pod["metadata"]["name"] == name) return true;
    }
    return false;
  }
  // Returns the last message of Events with this reason about this object.
  std::string Told(const std::string& reason, const std::string& about) const {
    std::string told;
    for (const kube::Json& event : api_.In("/api/v1/namespaces/default/events")) {
      if (event["reason"] == reason && event["involvedObject"]["name"] == about) {
        told = event["message"];
      }
    }
    return told;
  }

  kube::testing::FakeApi api_;
  FailingApi failing_{&api_};
  std::atomic<bool> leads_{true};
  const absl::Time start_ = kube::MonotonicNow();
  std::atomic<int> seconds_{0};  // offset of the clock
  int serial_ = 0;
  std::unique_ptr<ClusterCaches> caches_;
  std::unique_ptr<GangController> controller_;
  std::jthread thread_;
};

}  // namespace railhead::op::gangs::testing

#endif  // RAILHEAD_OPERATOR_GANGS_TESTING_CONTROLLER_SCENE_H_
