// SPDX-License-Identifier: Apache-2.0
#include "jobs/owner.h"

#include <gtest/gtest.h>

#include <string>

#include "kube/json.h"
#include "kube/testing/hostile_texts.h"

namespace railhead::jobs {
namespace {

// The API server accepts any text in an owner reference.
TEST(OwnerTest, AnOwnerWhosePartsAreNoNamesIsNone) {
  const kube::Json good = {{"apiVersion", "batch/v1"},
                           {"kind", "Job"},
                           {"name", "train"},
                           {"uid", "1-2"},
                           {"controller", true}};
  kube::Json pod = {{"metadata", {{"ownerReferences", {good}}}}};
  ASSERT_TRUE(ControllerOf(pod));
  EXPECT_EQ(ControllerOf(pod)->name, "train");
  for (const char* part : {"apiVersion", "kind", "name", "uid"}) {
    for (const std::string& text : kube::HostileTexts()) {
      pod["metadata"]["ownerReferences"][0] = good;
      pod["metadata"]["ownerReferences"][0][part] = text;
      EXPECT_FALSE(ControllerOf(pod)) << part << " " << text;
      EXPECT_EQ(OwnerOf(pod), Owner()) << part << " " << text;
    }
  }
}

TEST(OwnerTest, TheControllerGoesBeforeOtherOwners) {
  kube::Json pod = kube::Json::parse(R"({"metadata": {"ownerReferences": [
      {"uid": "0"}, {"kind": "Workflow", "uid": "1"}, {"kind": "Pod", "uid": "2"},
      {"kind": "Job", "uid": "3", "controller": true}]}})");
  EXPECT_EQ(OwnerOf(pod).uid, "3");
  pod["metadata"]["ownerReferences"].erase(3);
  EXPECT_FALSE(ControllerOf(pod));
  EXPECT_EQ(OwnerOf(pod).uid, "1");
}

}  // namespace
}  // namespace railhead::jobs
