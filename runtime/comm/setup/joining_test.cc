// SPDX-License-Identifier: Apache-2.0
//
// Which secret ranks prove to each other: each has a folder of its own in place of "/", as a
// container has.
#include "runtime/comm/setup/joining.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/comm/setup/setup.h"
#include "runtime/comm/setup/start.h"
#include "runtime/testing/ranks.h"

namespace railhead::comm {
namespace {

using railhead::testing::FreePort;
using railhead::testing::RunRanks;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kOne[] = "11111111111111111111111111111111\n";
constexpr char kOther[] = "22222222222222222222222222222222\n";

class JoiningTest : public ::testing::Test {
 protected:
  JoiningTest()
      : base_(std::filesystem::path(::testing::TempDir()) /
              absl::StrCat("railhead_joining_",
                           ::testing::UnitTest::GetInstance()->current_test_info()->name(), "_",
                           ::getpid())) {
    std::filesystem::remove_all(base_);
    for (int rank = 0; rank < 2; ++rank) {
      CommunicatorOptions& options = ranks_[rank];
      options.rendezvous = {rank, 2, "127.0.0.1", 0};
      options.setup.root = base_ / absl::StrCat(rank);
      options.setup.settings.pod = absl::StrCat("p", rank);
      // Some starts end by it. Both ranks come before it, also on a busy machine.
      options.setup.settings.start_timeout = absl::Seconds(10);
    }
  }
  ~JoiningTest() override { std::filesystem::remove_all(base_); }

  // What the node agent gives to a rank.
  void Give(int rank, const std::string& file, const std::string& text) {
    const std::filesystem::path folder = Folder(rank);
    std::filesystem::create_directories(folder);
    std::ofstream(folder / file) << text;
  }
  std::filesystem::path Folder(int rank) const {
    return base_ / absl::StrCat(rank) / "run/railhead/secret";
  }
  std::string UserFile(const std::string& text) const {
    std::filesystem::create_directories(base_);
    std::ofstream(base_ / "own") << text;
    return base_ / "own";
  }

  // Joins two ranks. Returns the error of each, or what `describe` returns of it.
  template <class Describe>
  std::vector<std::string> JoinEach(Describe describe) {
    const int port = FreePort();
    return RunRanks(2, [&](int rank) -> std::string {
      CommunicatorOptions options = Copy(ranks_[rank]);
      options.rendezvous.master_port = port;
      absl::StatusOr<bootstrap::Bootstrap> joined = Join(options);
      if (!joined.ok()) return joined.status().ToString();
      return describe(*joined, options.setup);
    });
  }

  // Returns what each rank's start came to, "proven", "open" or an error.
  std::vector<std::string> Run() {
    return JoinEach([](const bootstrap::Bootstrap& joined, const SetupOptions& /*setup*/) {
      return joined.session().proves() ? "proven" : "open";
    });
  }

  // Without the listener, which these have none of.
  static CommunicatorOptions Copy(const CommunicatorOptions& from) {
    CommunicatorOptions copy;
    copy.rendezvous = from.rendezvous;
    copy.key = from.key;
    copy.setup = from.setup;
    return copy;
  }

  std::filesystem::path base_;
  std::map<int, CommunicatorOptions> ranks_;
};

using Outcome = std::vector<std::string>;

TEST_F(JoiningTest, TheNodeAgentsSecretIsUsedWithoutASetting) {
  EXPECT_EQ(Run(), (Outcome{"open", "open"}));
  Give(0, "key", kOne);
  Give(1, "key", kOne);
  EXPECT_EQ(Run(), (Outcome{"proven", "proven"}));
  for (int rank = 0; rank < 2; ++rank) ranks_[rank].setup.settings.job_secret = false;
  EXPECT_EQ(Run(), (Outcome{"open", "open"}));
}

TEST_F(JoiningTest, WhoHasNoneOrThatOfAnotherJobIsTurnedAway) {
  Give(0, "key", kOne);
  for (const std::string& outcome : Run()) {
    EXPECT_THAT(outcome, AllOf(HasSubstr("rank 1 (pod p1)"), HasSubstr("RAILHEAD_SECRET_FILE")));
  }
  Give(1, "key", kOther);
  for (const std::string& outcome : Run()) EXPECT_THAT(outcome, HasSubstr("rank 1 (pod p1)"));
}

TEST_F(JoiningTest, AnUnusableSecretEndsTheStartAndNamesTheRank) {
  Give(0, "key", kOne);
  Give(1, "key", "short");
  for (const std::string& outcome : Run()) {
    EXPECT_THAT(outcome,
                AllOf(HasSubstr("rank 1 (pod p1)"), HasSubstr("secret/key has fewer than 16")));
  }
}

TEST_F(JoiningTest, TheUsersFileWinsAndSoDoesAnId) {
  Give(0, "key", kOne);
  Give(1, "key", kOther);
  const std::string own = UserFile(kOne);
  for (int rank = 0; rank < 2; ++rank) ranks_[rank].setup.settings.secret_file = own;
  EXPECT_EQ(Run(), (Outcome{"proven", "proven"}));
  for (int rank = 0; rank < 2; ++rank) {
    ranks_[rank].setup.settings.secret_file.clear();
    ranks_[rank].key = "the random key of an id";
  }
  EXPECT_EQ(Run(), (Outcome{"proven", "proven"}));
}

TEST_F(JoiningTest, AProgramThatWantsNoSecretGetsNone) {
  Give(0, "key", kOne);
  Give(1, "key", kOther);
  for (int rank = 0; rank < 2; ++rank) ranks_[rank].setup.settings.configured["secretFile"] = "";
  EXPECT_EQ(Run(), (Outcome{"open", "open"}));
}

// Not even a file that cannot be read keeps such ranks from starting; their pages say how they run.
TEST_F(JoiningTest, SwitchedOffOnAllRanksNoSecretIsUsedAndTheReportSaysSo) {
  Give(0, "key", kOne);
  Give(1, "key", kOther);
  ranks_[0].setup.settings.secret_file = "/nonexistent/key";
  for (int rank = 0; rank < 2; ++rank) ranks_[rank].setup.settings.use_secret = false;
  EXPECT_EQ(Run(), (Outcome{"open", "open"}));
  const Outcome outcomes = JoinEach([](bootstrap::Bootstrap& joined, const SetupOptions& setup) {
    const absl::StatusOr<Fabric> fabric = comm::SetUp(joined, setup);
    return fabric.ok() ? DescribeStart(setup, *fabric, 2).unauthenticated
                       : fabric.status().ToString();
  });
  EXPECT_EQ(outcomes, (Outcome{"RAILHEAD_AUTH=off", "RAILHEAD_AUTH=off"}));
}

// They have no common secret, so they cannot agree on the strictest: the error names both.
TEST_F(JoiningTest, SwitchedOffOnSomeRanksTheStartFailsAndNamesThem) {
  for (int off = 0; off < 2; ++off) {
    for (int rank = 0; rank < 2; ++rank) {
      Give(rank, "key", kOne);
      ranks_[rank].setup.settings.use_secret = rank != off;
    }
    for (const std::string& outcome : Run()) {
      EXPECT_THAT(outcome, AllOf(HasSubstr("rank 0 (pod p0) has "), HasSubstr("RAILHEAD_AUTH=off"),
                                 HasSubstr("rank 1 (pod p1) has ")));
    }
  }
}

// Off asks for less than any other policy, of ranks without a secret, too.
TEST_F(JoiningTest, WithoutASecretTheStrictestOfOffAndFramesCounts) {
  ranks_[0].setup.settings.use_secret = false;
  ranks_[1].setup.settings.frames = config::FrameWish::kSigned;
  const Outcome outcomes = JoinEach([](bootstrap::Bootstrap& joined, const SetupOptions& setup) {
    const absl::StatusOr<Fabric> fabric = comm::SetUp(joined, setup);
    if (!fabric.ok()) return fabric.status().ToString();
    return std::string(
        fabric->decision.protection == transport::FrameProtection::kSigned ? "signed" : "plain");
  });
  EXPECT_EQ(outcomes, (Outcome{"signed", "signed"}));
}

TEST_F(JoiningTest, WhereNoneCameTheJobIsOpenUnlessItIsRequired) {
  for (int rank = 0; rank < 2; ++rank) Give(rank, "none", "the pod has no controller");
  EXPECT_EQ(Run(), (Outcome{"open", "open"}));
  ranks_[1].setup.settings.require_secret = true;
  const Outcome outcomes = JoinEach([](bootstrap::Bootstrap& joined, const SetupOptions& setup) {
    return comm::SetUp(joined, setup).status().ToString();
  });
  for (const std::string& outcome : outcomes) {
    EXPECT_THAT(outcome, AllOf(HasSubstr("rank 1 (pod p1): RAILHEAD_AUTH=require"),
                               HasSubstr("(the pod has no controller)")));
  }
}

}  // namespace
}  // namespace railhead::comm
