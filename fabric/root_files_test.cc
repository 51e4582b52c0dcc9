// SPDX-License-Identifier: Apache-2.0
#include "fabric/root_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "fabric/testing/sysfs_tree.h"

namespace railhead::fabric {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class RootFilesTest : public ::testing::Test {
 protected:
  RootFiles Open() { return *RootFiles::Open(tree_.root()); }

  testing::SysfsTree tree_;
};

TEST_F(RootFilesTest, RootMustBeADirectory) {
  tree_.Write("/file", "x");
  EXPECT_THAT(RootFiles::Open(tree_.root() + "/file").status().message(), HasSubstr("/file"));
  EXPECT_THAT(RootFiles::Open(tree_.root() + "/none").status().message(), HasSubstr("/none"));
  EXPECT_TRUE(RootFiles::Open("/").ok());
}

TEST_F(RootFilesTest, ReadsOneLineWithOrWithoutNewline) {
  tree_.Write("/a", "4: ACTIVE\n");
  tree_.Write("/b", "  4: ACTIVE");
  tree_.Write("/c", "");
  EXPECT_EQ(Open().ReadAttribute("/a").value(), "4: ACTIVE");
  EXPECT_EQ(Open().ReadAttribute("/b").value(), "4: ACTIVE");
  EXPECT_EQ(Open().ReadAttribute("/c").value(), "");
}

TEST_F(RootFilesTest, RefusesHugeBinaryAndManyLines) {
  tree_.Write("/full", std::string(4096, 'x'));
  tree_.Write("/huge", std::string(4097, 'x'));
  tree_.Write("/binary", std::string("a\0b", 3));
  tree_.Write("/lines", "a\nb\n");
  EXPECT_TRUE(Open().ReadAttribute("/full").ok());
  for (const std::string path : {"/huge", "/binary", "/lines"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(Open().ReadAttribute(path).status())) << path;
  }
}

TEST_F(RootFilesTest, RefusesWhatIsNotAFileAndDoesNotBlockOnAPipe) {
  ASSERT_EQ(mkfifo((tree_.root() + "/pipe").c_str(), 0600), 0);
  tree_.MakeFolder("/folder");
  EXPECT_FALSE(Open().ReadAttribute("/pipe").ok());
  EXPECT_FALSE(Open().ReadAttribute("/folder").ok());
  EXPECT_TRUE(absl::IsNotFound(Open().ReadAttribute("/none").status()));
}

// From here this process's openat2 fails as that of a kernel that does not have it.
void TakeOpenat2Away() {
  std::array<sock_filter, 4> code = {{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  const sock_fprog program = {code.size(), code.data()};
  ASSERT_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  ASSERT_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

class RootFilesLinksTest : public RootFilesTest {
 protected:
  void Check() const {
    tree_.Write("/real/file", "inside");
    tree_.Link("/inside", "real");
    tree_.Link("/real/over", "../inside/file");
    tree_.Link("/around",
               absl::StrCat("..", tree_.root().substr(tree_.root().rfind('/')), "/real"));
    tree_.Link("/absolute", "/etc");
    tree_.Link("/up", "../../../../../../etc");
    tree_.Link("/loop", "loop");
    tree_.Link("/pair1", "pair2");
    tree_.Link("/pair2", "pair1");
    const RootFiles files = *RootFiles::Open(tree_.root());
    EXPECT_EQ(files.ReadAttribute("/inside/file").value_or("?"), "inside");
    EXPECT_EQ(files.ReadAttribute("/real/over").value_or("?"), "inside");
    EXPECT_EQ(files.ReadAttribute("/around/file").value_or("?"), "inside");
    EXPECT_THAT(files.List("/inside").value_or(std::vector<std::string>()),
                ElementsAre("file", "over"));
    EXPECT_EQ(files.Resolve("/inside/file").value_or("?"), "/real/file");
    EXPECT_THAT(files.Resolve("/absolute").status().message(), HasSubstr("outside"));
    EXPECT_THAT(files.ReadAttribute("/absolute/hostname").status().message(), HasSubstr("outside"));
    EXPECT_THAT(files.List("/up").status().message(), HasSubstr("outside"));
    EXPECT_FALSE(files.Resolve("/loop").ok());
    EXPECT_FALSE(files.List("/pair1").ok());
    EXPECT_EQ(files.Stat("/absolute/passwd").kind, NodeKind::kMissing);
    EXPECT_EQ(files.Stat("/inside/file").kind, NodeKind::kFile);
    EXPECT_TRUE(files.IsDirectory("/inside"));
    EXPECT_FALSE(files.IsDirectory("/absolute"));
    EXPECT_EQ(files.ReadLink("/up").value_or("?"), "../../../../../../etc");
    EXPECT_FALSE(files.ReadLink("/up/passwd").ok());
    EXPECT_EQ(files.ReadLink("/around/over").value_or("?"), "../inside/file");
    EXPECT_TRUE(absl::IsInvalidArgument(files.ReadLink("/real/file").status()));
    EXPECT_TRUE(absl::IsNotFound(files.ReadLink("/real/none").status()));
    EXPECT_TRUE(absl::IsNotFound(files.Resolve("/real/none").status()));
    tree_.Write("/real/odd (deleted)", "");
    EXPECT_EQ(files.Resolve("/inside/odd (deleted)").value_or("?"), "/real/odd (deleted)");
  }
};

TEST_F(RootFilesLinksTest, AreFollowedInsideTheRootOnly) { Check(); }

TEST_F(RootFilesLinksTest, AreFollowedTheSameByAKernelWithoutOpenat2) {
  EXPECT_EXIT(
      {
        TakeOpenat2Away();
        Check();
        _exit(HasFailure() ? 1 : 0);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST_F(RootFilesTest, ASiblingWithTheSamePrefixIsOutside) {
  tree_.MakeFolder("/a");
  tree_.Write("/ab/secret", "x");
  tree_.Link("/a/link", "../ab");
  const RootFiles files = *RootFiles::Open(tree_.root() + "/a");
  EXPECT_FALSE(files.ReadAttribute("/link/secret").ok());
}

TEST_F(RootFilesTest, ListsSortedAndBounded) {
  tree_.Write("/l/b", "");
  tree_.Write("/l/a", "");
  EXPECT_THAT(Open().List("/l").value(), ElementsAre("a", "b"));
  EXPECT_TRUE(absl::IsNotFound(Open().List("/none").status()));
  // Links take no block of the disk each, as folders would.
  for (int i = 0; i < 16385; ++i) tree_.Link(absl::StrCat("/many/", i), "a");
  EXPECT_TRUE(absl::IsResourceExhausted(Open().List("/many").status()));
}

TEST_F(RootFilesTest, TellsWhatStandsAtAPath) {
  tree_.Write("/file", "");
  EXPECT_EQ(Open().Stat("/file").kind, NodeKind::kFile);
  EXPECT_EQ(Open().Stat("/sys").kind, NodeKind::kOther);
  const NodeInfo null = RootFiles::Open("/")->Stat("/dev/null");
  EXPECT_EQ(null.kind, NodeKind::kCharDevice);
  EXPECT_EQ(null.major, 1u);
  EXPECT_EQ(null.minor, 3u);
}

}  // namespace
}  // namespace railhead::fabric
