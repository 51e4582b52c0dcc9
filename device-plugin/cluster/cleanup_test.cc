// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/cluster/cleanup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "device-plugin/cluster/node_reporter.h"
#include "kube/json.h"
#include "kube/testing/fake_api.h"

namespace railhead::device_plugin {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

void PutNode(kube::testing::FakeApi& api, const std::string& name, const std::string& manager) {
  api.Put({"v1", "nodes", "", name},
          {{"metadata",
            {{"name", name},
             {"labels", {{"railhead.io/rails", "8"}}},
             {"managedFields", {{{"manager", "kubelet"}}, {{"manager", manager}}}}}}});
}

TEST(ForgetNodesTest, TakesWhatWasWrittenFromEveryNodeThatHasIt) {
  kube::testing::FakeApi api;
  PutNode(api, "a", "railhead-device-plugin");
  PutNode(api, "b", "someone-else");
  PutNode(api, "c", "railhead-device-plugin");
  const auto forgotten = CleanUpNodes(api);
  ASSERT_TRUE(forgotten.ok()) << forgotten.status();
  EXPECT_THAT(*forgotten, ElementsAre("a", "c"));
  EXPECT_FALSE(api.At({"v1", "nodes", "", "a"})["metadata"].contains("labels"));
  EXPECT_TRUE(api.At({"v1", "nodes", "", "b"})["metadata"].contains("labels"));
  const std::vector<std::string> calls = api.TakeCalls();
  EXPECT_THAT(calls, Contains("PATCH /api/v1/nodes/c/status?force=true&fieldManager="
                              "railhead-device-plugin"));
  EXPECT_THAT(calls, Not(Contains(::testing::StartsWith("PATCH /api/v1/nodes/b"))));
}

TEST(ForgetNodesTest, TakesTheOperatorsLabelsToo) {
  kube::testing::FakeApi api;
  PutNode(api, "a", "railhead-topology");
  const auto forgotten = CleanUpNodes(api);
  ASSERT_TRUE(forgotten.ok()) << forgotten.status();
  EXPECT_THAT(*forgotten, ElementsAre("a"));
  const std::vector<std::string> calls = api.TakeCalls();
  EXPECT_THAT(calls, Contains("PATCH /api/v1/nodes/a?force=true&fieldManager=railhead-topology"));
  EXPECT_THAT(calls, Not(Contains(::testing::HasSubstr("railhead-device-plugin"))));
}

// As after devicePlugin.nodeFacts was switched off: the DaemonSet, and with it what it owns, stays.
TEST(ForgetNodesTest, TakesTheAgentsFactsAlone) {
  kube::testing::FakeApi api;
  PutNode(api, "a", "railhead-device-plugin");
  PutNode(api, "b", "railhead-device-plugin");
  PutNode(api, "c", "railhead-topology");
  api.Put(FeatureOf("railhead", "a"), {{"metadata", {{"name", "railhead-a"}}}});
  const auto forgotten = CleanUpNodes(api, {/*agents=*/true, /*topology=*/false, "railhead"});
  ASSERT_TRUE(forgotten.ok()) << forgotten.status();
  EXPECT_THAT(*forgotten, ElementsAre("a", "b"));
  EXPECT_FALSE(api.At({"v1", "nodes", "", "a"})["metadata"].contains("labels"));
  EXPECT_TRUE(api.At({"v1", "nodes", "", "c"})["metadata"].contains("labels"));
  EXPECT_THAT(api.In("/apis/nfd.k8s-sigs.io/v1alpha1/namespaces/railhead/nodefeatures"),
              ::testing::IsEmpty());
}

// As after operator.topology.publish was switched off.
TEST(ForgetNodesTest, TakesTheTopologyAlone) {
  kube::testing::FakeApi api;
  PutNode(api, "a", "railhead-device-plugin");
  PutNode(api, "c", "railhead-topology");
  const auto forgotten = CleanUpNodes(api, {/*agents=*/false, /*topology=*/true});
  ASSERT_TRUE(forgotten.ok()) << forgotten.status();
  EXPECT_THAT(*forgotten, ElementsAre("c"));
  EXPECT_TRUE(api.At({"v1", "nodes", "", "a"})["metadata"].contains("labels"));
  EXPECT_FALSE(api.At({"v1", "nodes", "", "c"})["metadata"].contains("labels"));
}

TEST(ForgetNodesTest, AnOutageIsAnError) {
  kube::testing::FakeApi api;
  api.SetOutage(absl::UnavailableError("no connection"));
  EXPECT_TRUE(absl::IsUnavailable(CleanUpNodes(api).status()));
}

}  // namespace
}  // namespace railhead::device_plugin
