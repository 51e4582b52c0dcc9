// SPDX-License-Identifier: Apache-2.0
#include "cli/output/command.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kube/testing/hostile_texts.h"

namespace railhead::cli {
namespace {

TEST(Command, HasItsNames) {
  EXPECT_EQ(Command("kubectl -n $0 logs $1 --tail=50", {"team", "train-0"}),
            "kubectl -n team logs train-0 --tail=50");
  EXPECT_EQ(Command("$1 $0 $1", {"a", "b"}), "b a b");
  EXPECT_EQ(Command("railhead topology", {}), "railhead topology");
}

TEST(Command, LeavesOutWhatIsNoName) {
  for (const std::string& text : kube::HostileTexts()) {
    EXPECT_EQ(Command("railhead why $0 -n $1", {text, "team"}), "railhead why NAME -n team")
        << text;
    EXPECT_EQ(Command("railhead why $0 -n $1", {"train", text}), "railhead why train -n NAME");
  }
  // A place in a name is not filled.
  EXPECT_EQ(Command("a $0 $1", {"$1", "b"}), "a NAME b");
}

}  // namespace
}  // namespace railhead::cli
