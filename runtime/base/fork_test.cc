// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/fork.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace railhead {
namespace {

TEST(ForkTest, AChildAndItsChildAreForeignToWhatTheirParentsMade) {
  const OwnProcess parents;
  EXPECT_FALSE(parents.IsForeign());
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    bool right = parents.IsForeign();
    const OwnProcess own;
    right = right && !own.IsForeign();
    const pid_t grandchild = fork();
    if (grandchild == 0) _exit(parents.IsForeign() && own.IsForeign() ? 0 : 1);
    int status = 1;
    right = right && waitpid(grandchild, &status, 0) == grandchild && status == 0;
    _exit(right && !own.IsForeign() ? 0 : 1);
  }
  int status = 1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_FALSE(parents.IsForeign());
}

}  // namespace
}  // namespace railhead
