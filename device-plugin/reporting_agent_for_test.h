// SPDX-License-Identifier: Apache-2.0
//
// A whole agent that reports to an API server.
#ifndef RAILHEAD_DEVICE_PLUGIN_REPORTING_AGENT_FOR_TEST_H_
#define RAILHEAD_DEVICE_PLUGIN_REPORTING_AGENT_FOR_TEST_H_

#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "device-plugin/cluster/node_reporter.h"
#include "device-plugin/running_agent_for_test.h"
#include "device-plugin/testing/eventually.h"
#include "kube/json.h"
#include "kube/testing/fake_api.h"

namespace railhead::device_plugin {

// An agent with an API server to tell.
class ClusterTest : public ConfigTest {
 protected:
  ClusterTest() {
    api_.Put({"v1", "nodes", "", "node-1"}, {{"metadata", {{"name", "node-1"}}}});
    reporting_.node = "node-1";
    reporting_.pause = absl::Milliseconds(1);
    reporter_ = std::make_unique<NodeReporter>(reporting_, &api_);
    options_.reporter = reporter_.get();
  }
  std::string Condition() {
    const kube::ObjectRef status = {"v1", "nodes", "", "node-1", "status"};
    if (api_.In("/api/v1/nodes/node-1").empty()) return "";
    return kube::DumpJson(api_.At(status)["status"]["conditions"][0]);
  }
  // Reason and message of all events of the node, or of a namespace.
  std::string Events(const std::string& space = "default") {
    std::string told;
    for (const kube::Json& event : api_.In("/api/v1/namespaces/" + space + "/events")) {
      absl::StrAppend(&told, kube::StringAt(event, {"involvedObject", "name"}), " ",
                      kube::StringAt(event, {"reason"}), ": ", kube::StringAt(event, {"message"}),
                      "\n");
    }
    return told;
  }
  // How often events of this reason were reported.
  int CountOf(const std::string& reason, const std::string& space = "default") {
    int count = 0;
    for (const kube::Json& event : api_.In("/api/v1/namespaces/" + space + "/events")) {
      if (event["reason"] == reason) count += event["count"].get<int>();
    }
    return count;
  }
  bool WaitForEvent(const std::string& text, const std::string& space = "default") {
    return testing::Eventually([&] { return absl::StrContains(Events(space), text); });
  }

  kube::testing::FakeApi api_;
  NodeReporter::Options reporting_;
  std::unique_ptr<NodeReporter> reporter_;
};

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_REPORTING_AGENT_FOR_TEST_H_
