// SPDX-License-Identifier: Apache-2.0
//
// Jobs in process trees of a generator, each in a folder in place of "/". tests/launchers has real
// shells.
#include "runtime/bootstrap/starter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/testing/processes.h"

namespace railhead::bootstrap {
namespace {

using ::testing::HasSubstr;

class Machine {
 public:
  explicit Machine(const std::string& boot = "b1")
      : root_(std::filesystem::path(::testing::TempDir()) /
              absl::StrCat("railhead_starter_", ::getpid(), "_", boot)) {
    std::filesystem::remove_all(root_);
    Write("sys/kernel/random/boot_id", absl::StrCat(boot, "\n"));
    Add(1, 0, "init", "");
  }
  ~Machine() { std::filesystem::remove_all(root_); }

  // Adds a process with the environment "A=1 B=2". Returns its number.
  int Add(int parent, const std::string& name, const std::string& environment) {
    Add(++last_, parent, name, environment);
    return last_;
  }
  // Adds a fork of the parent, which has its name, command and environment.
  int Fork(int parent, const std::string& name, const std::string& environment) {
    Add(++last_, parent, name, environment);
    std::filesystem::copy_file(root_ / "proc" / absl::StrCat(parent) / "cmdline",
                               root_ / "proc" / absl::StrCat(last_) / "cmdline",
                               std::filesystem::copy_options::overwrite_existing);
    return last_;
  }
  void Add(int pid, int parent, const std::string& name, const std::string& environment) {
    std::string columns = absl::StrCat(pid, " (", name, ") S ", parent);
    for (int i = 0; i < 17; ++i) columns += " 0";
    Write(absl::StrCat(pid, "/stat"), absl::StrCat(columns, " ", 1000 + pid, " 0 0\n"));
    std::string bytes = environment;
    for (char& c : bytes) c = c == ' ' ? '\0' : c;
    Write(absl::StrCat(pid, "/environ"), bytes);
    Write(absl::StrCat(pid, "/cmdline"), absl::StrCat(name, " script", pid));
    Write(absl::StrCat(pid, "/ns/pid"), "");
    // Links to one file have one number.
    std::filesystem::remove(root_ / "proc" / absl::StrCat(pid) / "ns/pid");
    std::filesystem::create_hard_link(root_ / "proc/sys/kernel/random/boot_id",
                                      root_ / "proc" / absl::StrCat(pid) / "ns/pid");
  }
  std::string StarterOf(int pid) const {
    std::filesystem::remove(root_ / "proc/self");
    std::filesystem::create_symlink(absl::StrCat(pid), root_ / "proc/self");
    return FindStarter(root_, "RANK");
  }

 private:
  void Write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories((root_ / "proc" / path).parent_path());
    std::ofstream(root_ / "proc" / path) << text;
  }

  std::filesystem::path root_;
  int last_ = 100;
};

TEST(StarterTest, RanksOfOneStarterAreOneJobAndOthersAreNot) {
  std::mt19937 random{20266};
  const auto below = [&random](int limit) {
    return static_cast<int>(random() % static_cast<unsigned>(limit));
  };
  for (int round = 0; round < 30; ++round) {
    Machine machine;
    // A terminal, perhaps with a RANK of a pod in it.
    int outer = machine.Add(1, "sshd", "");
    const bool in_pod = below(3) == 0;
    for (int i = below(3); i > 0; --i) outer = machine.Add(outer, "bash", in_pod ? "RANK=0" : "");
    struct Rank {
      int job;
      std::string starter;
    };
    std::vector<Rank> ranks;
    const int jobs = 1 + below(3);
    for (int job = 0; job < jobs; ++job) {
      const std::string of_script = in_pod ? "A=1 RANK=0" : "A=1";
      const int script = machine.Add(outer, "sh", of_script);
      const int world = 1 + below(4);
      for (int rank = 0; rank < world; ++rank) {
        const std::string environment = absl::StrCat("A=1 RANK=", rank, " WORLD_SIZE=", world);
        int process = script;
        // Subshells in which RANK is set.
        for (int i = below(3); i > 0; --i) process = machine.Fork(process, "sh", of_script);
        // Programs that start the rank, such as sh -c or numactl without exec.
        for (int i = below(3); i > 0; --i) process = machine.Add(process, "wrapper", environment);
        process = machine.Add(process, "a (b) c", environment);
        ranks.push_back({job, machine.StarterOf(process)});
        EXPECT_LE(ranks.back().starter.size(), kStarterLimit);
        // In a pod, all that rank 0 descends from may seem to be a part of it.
        if (!in_pod) {
          EXPECT_NE(ranks.back().starter, "");
        }
      }
    }
    for (const Rank& one : ranks) {
      for (const Rank& other : ranks) {
        if (one.job == other.job) {
          EXPECT_FALSE(HaveOtherStarters(one.starter, other.starter)) << round;
        } else if (!in_pod) {
          // In a pod with a RANK, what has started both may seem to be a part of rank 0.
          EXPECT_TRUE(HaveOtherStarters(one.starter, other.starter)) << round;
          EXPECT_NE(OutermostStarter(one.starter), OutermostStarter(other.starter));
        }
        if (one.job == other.job && !in_pod) {
          EXPECT_EQ(OutermostStarter(one.starter), OutermostStarter(other.starter));
        }
      }
    }
  }
}

TEST(StarterTest, WhatIsNotKnownRejectsNobody) {
  Machine machine;
  const int shell = machine.Add(machine.Add(1, "sshd", ""), "bash", "");
  const std::string known = machine.StarterOf(machine.Add(shell, "rank", "RANK=0"));
  ASSERT_TRUE(HaveOtherStarters(
      known, machine.StarterOf(machine.Add(machine.Add(1, "cron", ""), "rank", "RANK=1"))));
  // Processes whose starter has ended belong to init, or to systemd's user manager.
  const std::string orphan = machine.StarterOf(machine.Add(1, "rank", "RANK=1"));
  EXPECT_EQ(orphan, "");
  // Each rank may have come over a connection, or in a container, of its own.
  for (const char* name : {"systemd", "sshd", "sshd-session", "containerd-shim", "conmon"}) {
    const int daemon = machine.Add(1, name, "");
    EXPECT_EQ(machine.StarterOf(machine.Add(daemon, "rank", "RANK=1")), "") << name;
    const int script = machine.Add(daemon, "sh", "");
    EXPECT_NE(machine.StarterOf(machine.Add(script, "rank", "RANK=1")), "") << name;
  }
  // A parent outside of this process namespace.
  EXPECT_EQ(machine.StarterOf(machine.Add(0, "rank", "RANK=1")), "");
  const Machine elsewhere("b2");
  Machine other("b3");
  const std::string of_other = other.StarterOf(other.Add(other.Add(1, "cron", ""), "rank", ""));
  EXPECT_NE(of_other, "");
  for (const std::string& unknown : {std::string(), orphan, of_other, std::string("x"),
                                     std::string("a|b"), std::string("a|b|c|d")}) {
    EXPECT_FALSE(HaveOtherStarters(known, unknown));
    EXPECT_FALSE(HaveOtherStarters(unknown, known));
  }
}

TEST(StarterTest, ForksOfOneProcessAreOneJob) {
  const absl::Time deadline = MonotonicNow() + absl::Seconds(60);
  std::vector<std::string> starters;
  for (int rank = 0; rank < 2; ++rank) {
    starters.push_back(railhead::testing::Process::Fork({{"RANK", absl::StrCat(rank)}},
                                                        [] { return FindStarter("/", "RANK"); })
                           .Wait(deadline)
                           .output);
  }
  EXPECT_EQ(starters[0], starters[1]);
  EXPECT_THAT(DescribeStarter(starters[0]), HasSubstr(absl::StrCat("process ", ::getpid(), " (")));
  EXPECT_FALSE(HaveOtherStarters(starters[0], starters[1]));
}

}  // namespace
}  // namespace railhead::bootstrap
