// SPDX-License-Identifier: Apache-2.0
#include "operator/objects/object_name.h"

#include <gtest/gtest.h>

#include <string>

#include "kube/json.h"
#include "operator/objects/owner.h"
#include "operator/testing/hostile_texts.h"

namespace railhead::op {
namespace {

TEST(ObjectNameTest, NamesAreNamesAndNothingElseIs) {
  for (const char* name : {"a", "0", "train-0", "my.pod", "A_label.Value", "n-1-x7k2p"}) {
    EXPECT_TRUE(IsObjectName(name)) << name;
  }
  EXPECT_TRUE(IsObjectName(std::string(253, 'a')));
  for (const char* name : {"", "-a", ".", "_a", "a/b", "a b", "a:b", "a=b", "\xc3\xa9"}) {
    EXPECT_FALSE(IsObjectName(name)) << name;
  }
  for (const std::string& text : HostileTexts()) EXPECT_FALSE(IsObjectName(text)) << text;
}

// The API server accepts any text in an owner reference.
TEST(ObjectNameTest, AnOwnerWhosePartsAreNoNamesIsNone) {
  const kube::Json good = {{"apiVersion", "batch/v1"},
                           {"kind", "Job"},
                           {"name", "train"},
                           {"uid", "1-2"},
                           {"controller", true}};
  kube::Json pod = {{"metadata", {{"ownerReferences", {good}}}}};
  ASSERT_TRUE(ControllerOf(pod));
  EXPECT_EQ(ControllerOf(pod)->name, "train");
  for (const char* part : {"apiVersion", "kind", "name", "uid"}) {
    for (const std::string& text : HostileTexts()) {
      pod["metadata"]["ownerReferences"][0] = good;
      pod["metadata"]["ownerReferences"][0][part] = text;
      EXPECT_FALSE(ControllerOf(pod)) << part << " " << text;
    }
  }
}

}  // namespace
}  // namespace railhead::op
