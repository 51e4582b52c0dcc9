// SPDX-License-Identifier: Apache-2.0
#include "cli/nccl_log/nccl_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/nccl_log/log_rules.h"

namespace railhead::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Builds the log of a job: each line is of every rank, two to a host.
class Job {
 public:
  explicit Job(int ranks = 4) : ranks_(ranks) {}

  Job& All(const std::string& text, const std::string& level = "INFO") {
    for (int rank = 0; rank < ranks_; ++rank) Of(rank, text, level);
    return *this;
  }
  Job& Of(int rank, const std::string& text, const std::string& level = "INFO") {
    absl::StrAppend(&text_, "n", rank / 2, ":", 100 + rank, ":", 200 + rank, " [", rank % 2, "] ",
                    level == "INFO" ? "" : "net.cc:349 ", "NCCL ", level, " ", text, "\n");
    return *this;
  }
  Job& Raw(const std::string& line) {
    absl::StrAppend(&text_, line, "\n");
    return *this;
  }
  Job& Env(const std::string& name, const std::string& value) {
    return All(absl::StrCat(name, " set by environment to ", value));
  }
  // The lines of a start with this network.
  Job& Start(const std::string& network, bool complete = true) {
    Raw("NCCL version 2.30.7+cuda12.9");
    All("NET/" + network + " : Using [0]eth0:10.0.0.1<0>");
    All("Using network " + network);
    for (int rank = 0; rank < ranks_; ++rank) {
      Of(rank, absl::StrCat("comm 0x55 rank ", rank, " nRanks ", ranks_, " nNodes ", ranks_ / 2,
                            " localRanks 2 localRank ", rank % 2, " MNNVL 0"));
      Of(rank, absl::StrCat("Channel 00/0 : ", rank, "[0] -> ", (rank + 1) % ranks_,
                            "[0] [send] via NET/", network, "/0"));
    }
    return complete ? End() : *this;
  }
  Job& End() {
    for (int rank = 0; rank < ranks_; ++rank) {
      Of(rank, absl::StrCat("ncclCommInitRank comm 0x55 rank ", rank, " nranks ", ranks_,
                            " cudaDev 0 busId 1000 commId 0x1 - Init COMPLETE"));
    }
    return *this;
  }
  const std::string& text() const { return text_; }

 private:
  int ranks_;
  std::string text_;
};

std::vector<std::string> ChecksOf(const std::string& text) {
  std::vector<std::string> checks;
  for (const Finding& finding : Diagnose(ParseNcclLog(text))) {
    checks.push_back(finding.check);
    EXPECT_FALSE(finding.fix.empty() && finding.severity != Severity::kOk) << finding.observed;
  }
  return checks;
}

std::string Only(const std::string& text) {
  const std::vector<Finding> findings = Diagnose(ParseNcclLog(text));
  EXPECT_THAT(findings, SizeIs(1)) << FindingsTable(findings);
  return findings.empty() ? "" : FindingLine(findings.front());
}

TEST(NcclLogTest, ALineIsOfTheProcessThatWroteIt) {
  const NcclLog log = ParseNcclLog(
      "[pod/train-0/main] 2026-11-30T10:00:00Z train-0:7:19 [0] NCCL INFO Using network IB\n"
      "[1,3]<stdout>:train-1:7:20 [1] NCCL INFO Using network Socket\n"
      "[2026-11-30 10:00:00] train-0:7:21 [0] net.cc:1 NCCL WARN NET/Railhead: a cause\n"
      "epoch 1: NCCL INFO is a word of the program\r\n"
      "NCCL version 2.28.9+cuda12.9\n");
  EXPECT_EQ(log.version, "2.28.9+cuda12.9");
  ASSERT_THAT(log.processes, SizeIs(2));
  EXPECT_EQ(log.processes[0].name, "train-0:7");
  EXPECT_EQ(log.processes[0].network, "IB");
  EXPECT_THAT(log.processes[0].own_warnings, ElementsAre("a cause"));
  EXPECT_EQ(log.processes[1].network, "Socket");
}

TEST(NcclLogTest, AHealthyJobPasses) {
  const std::string text = Job().Start("IB").text();
  EXPECT_EQ(Only(text), "log: NCCL 2.30.7+cuda12.9; network: IB (4 ranks)");
  EXPECT_THAT(ChecksOf(Job()
                           .Env("NCCL_NET_PLUGIN", "/opt/railhead/nccl-net/libnccl-net-railhead.so")
                           .All("NET/Plugin: Loaded net plugin Railhead (v12)")
                           .All("Successfully loaded external network plugin /opt/railhead/x.so")
                           .Start("Railhead")
                           .text()),
              ElementsAre("NcclLog"));
}

// That NCCL looks for a plugin without being told, and finds none, means nothing.
TEST(NcclLogTest, NoPluginIsNoProblem) {
  for (const char* line :
       {"NET/Plugin: Could not find: libnccl-net.so.",
        "NET/Plugin : Plugin load (libnccl-net.so) returned 2 : libnccl-net.so: cannot open shared "
        "object file: No such file or directory",
        "NET/Plugin: Failed to find ncclNetPlugin_v8 symbol.",
        "NET/Plugin : No plugin found, using internal implementation"}) {
    EXPECT_THAT(ChecksOf(Job().All(line).Start("IB").text()), ElementsAre("NcclLog")) << line;
    EXPECT_THAT(ChecksOf(Job().Env("NCCL_NET_PLUGIN", "none").All(line).Start("IB").text()),
                ElementsAre("NcclLog"));
  }
}

TEST(NcclLogTest, APluginThatIsNotThere) {
  Job job;
  job.Env("NCCL_NET_PLUGIN", "/opt/x/libnccl-net-railhead.so")
      .All("NET/Plugin: Could not find: /opt/x/libnccl-net-railhead.so.")
      .Start("Socket");
  EXPECT_THAT(Only(job.text()),
              HasSubstr("rank 0 (n0:100) and 3 more: the plugin /opt/x/libnccl-net-railhead.so "
                        "(NCCL_NET_PLUGIN) was not loaded: no such file in the search path, and "
                        "NCCL uses Socket instead; check that the file is in the image"));
  // On one rank only, in the words of another version.
  Job old;
  old.Of(2, "NCCL_NET_PLUGIN set by environment to railhead")
      .Of(2,
          "NET/Plugin : Plugin load (libnccl-net-railhead.so) returned 2 : "
          "libnccl-net-railhead.so: "
          "cannot open shared object file: No such file or directory")
      .Start("IB");
  EXPECT_THAT(Only(old.text()),
              HasSubstr("rank 2 (n1:102): the plugin railhead (NCCL_NET_PLUGIN)"));
  // 2.26 does not log the variable, and makes this name of it.
  Job silent;
  silent.All("NET/Plugin: Could not find: libnccl-net-/x.so.so. Using internal net plugin.")
      .Start("IB");
  EXPECT_THAT(Only(silent.text()), HasSubstr("the plugin libnccl-net-/x.so.so (NCCL_NET_PLUGIN)"));
}

// The file's own error is the cause, and not that NCCL has tried its other name.
TEST(NcclLogTest, APluginThatDoesNotLoad) {
  Job job;
  job.Env("NCCL_NET_PLUGIN", "x")
      .All("NET/Plugin: libnccl-net-x.so: libcudart.so.99: undefined symbol: foo")
      .All("NET/Plugin: Could not find: x.")
      .Start("Socket");
  EXPECT_THAT(Only(job.text()), HasSubstr("libnccl-net-x.so: libcudart.so.99: undefined symbol"));
}

TEST(NcclLogTest, APluginOfAnUnknownVersion) {
  Job job;
  job.Env("NCCL_NET_PLUGIN", "x")
      .All("External network plugin libnccl-net-x.so is unsupported")
      .Start("IB");
  EXPECT_THAT(Only(job.text()), HasSubstr("NCCL 2.30.7+cuda12.9 does not know any version of the "
                                          "plugin x's tables, and NCCL uses IB instead"));
  Job old;
  old.Env("NCCL_NET_PLUGIN", "x")
      .All("NET/Plugin: Failed to find ncclNetPlugin_v10 symbol.")
      .Start("IB");
  EXPECT_THAT(ChecksOf(old.text()), ElementsAre("NcclPluginUnsupported"));
}

TEST(NcclLogTest, APluginThatCannotBeUsed) {
  Job job;
  job.Env("NCCL_NET_PLUGIN", "railhead")
      .All("NET/Plugin: Loaded net plugin Railhead (v12)")
      .All("NET/Railhead: RDMA is required, but the pod has no device", "WARN");
  EXPECT_THAT(ChecksOf(Job(job).Start("Socket").text()), ElementsAre("NcclPluginFailed"));  // 2.26
  job.All("Failed to initialize NET plugin Railhead", "ATTN");  // from 2.32 on
  EXPECT_THAT(Only(Job(job).Start("Socket").text()),
              HasSubstr("cannot be used: RDMA is required, but the pod has no device, and NCCL "
                        "uses Socket instead; fix this cause"));
  EXPECT_THAT(Only(job.All("Failed to initialize any NET plugin", "WARN").text()),
              HasSubstr("and NCCL ended, because NCCL_NET excludes other networks"));
}

TEST(NcclLogTest, ANetworkThatIsNotThere) {
  const auto ended = [](Job job) {
    return Only(job.All("Failed to initialize any NET plugin", "WARN").text());
  };
  EXPECT_THAT(ended(Job().All("Failed to initialize NET plugin IB")),
              HasSubstr("only RDMA is allowed (NCCL_NET=IB) and it found no device; check that"));
  EXPECT_THAT(Only(Job().All("Error: network Foo not found.", "WARN").text()),
              HasSubstr("no network of the name in NCCL_NET"));
  EXPECT_THAT(ended(Job()), HasSubstr("no network of the name in NCCL_NET; correct NCCL_NET"));
}

TEST(NcclLogTest, SocketsThatNobodyAskedFor) {
  for (const char* line : {"NET/IB : No device found.", "Failed to initialize NET plugin IB"}) {
    EXPECT_THAT(ChecksOf(Job().All(line).Start("Socket").text()), ElementsAre("NcclOverSockets"));
    EXPECT_THAT(ChecksOf(Job().Env("NCCL_IB_DISABLE", "1.").All(line).Start("Socket").text()),
                ElementsAre("NcclLog"));
    // They were chosen: NCCL looks for RDMA devices later, for other things.
    EXPECT_THAT(ChecksOf(Job().Start("Socket").All(line).text()), ElementsAre("NcclLog"));
  }
  // One node: NCCL names a network that it does not need.
  EXPECT_THAT(ChecksOf(Job(2).All("Using network Socket").End().text()), ElementsAre("NcclLog"));
}

TEST(NcclLogTest, GpuDirectThatIsOff) {
  const char* const line = "NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'";
  EXPECT_THAT(Only(Job().Start("IB").Of(3, line).text()),
              HasSubstr("rank 3 (n1:103): no GPUDirect RDMA with mlx5_0"));
  EXPECT_THAT(ChecksOf(Job().Start("Railhead").All(line).text()), ElementsAre("NcclLog"));
}

TEST(NcclLogTest, TooLittleToTell) {
  EXPECT_THAT(Only("epoch 1\nepoch 2\n"), HasSubstr("no line of NCCL; set NCCL_DEBUG=INFO"));
  EXPECT_THAT(Only(Job().All("some trouble", "WARN").text()), HasSubstr("warnings of NCCL only"));
}

// Each is as in a public report; the texts around the known ones are ours.
TEST(NcclLogTest, SharpThatIsNotUsed) {
  const auto job = [] { return Job().Env("NCCL_COLLNET_ENABLE", "1."); };
  // The aggregation manager refuses the job.
  EXPECT_THAT(
      Only(job()
               .Of(3, "NET/IB : SHARP coll init error: Cannot create SHARP job(-11)", "WARN")
               .Start("IBext")
               .text()),
      HasSubstr("not used: NET/IB : SHARP coll init error: Cannot create SHARP job(-11)"));
  // Another job holds the streaming tree: the SHARP library's own line, and the plugin's.
  EXPECT_THAT(
      Only(job()
               .Raw("[n1:1:103 - comm.c:370] ERROR Failed to lock SAT tree(ID:0x40 ret:0x4)")
               .Of(3, "SHARP group create: Streaming Tree lock failed (-18)", "WARN")
               .Start("IBext")
               .text()),
      HasSubstr("rank 3 (n1:103): SHARP was requested (NCCL_COLLNET_ENABLE=1) and is not "
                "used: Failed to lock SAT tree(ID:0x40 ret:0x4)"));
  // The HCA's port is the subnet manager's.
  EXPECT_THAT(
      Only(job()
               .Raw("[n0:1:101 unique id 1201] ERROR collect_ports_data: device mlx5_0 port 1 is "
                    "not valid (port is used by SM)")
               .Start("IBext")
               .text()),
      HasSubstr("port is used by SM"));
  // The silent fallback: one rank's failure takes it from all.
  EXPECT_THAT(
      ChecksOf(job()
                   .Of(1, "SHARP coll init error: no resources", "WARN")
                   .All("Cannot initialize CollNet, using point-to-point network instead", "WARN")
                   .Start("IBext")
                   .text()),
      ElementsAre("SharpNotUsed", "SharpNotUsed"));
  // Two nodes, and the threshold is above that.
  EXPECT_THAT(Only(job()
                       .Start("IBext")
                       .All("Communicator has 2 nodes which is less than CollNet node threshold 3, "
                            "disabling CollNet")
                       .text()),
              HasSubstr("the job has 2 nodes, fewer than NCCL_COLLNET_NODE_THRESHOLD, 3"));
  // No plugin with CollNet.
  Job none = job();
  for (int rank = 0; rank < 4; ++rank) {
    none.Of(rank, absl::StrCat("Rank ", rank, ": 0 CollNet devices"));
  }
  EXPECT_THAT(Only(none.Start("Railhead").text()), HasSubstr("no plugin with CollNet was loaded"));
  EXPECT_THAT(ChecksOf(job().Start("IB").text()), ElementsAre("SharpNotUsed"));
}

TEST(NcclLogTest, SharpThatHangs) {
  const auto begun = [] {
    Job job;
    job.Env("NCCL_COLLNET_ENABLE", "1").Start("IBext", /*complete=*/false);
    job.Of(0, "CollNet 00/0 : 0 [receive] via COLLNET/SHARP/1/GDRDMA");
    job.Of(2, "Sharp rank 1/2 initialized on mlx5_5:1");
    return job;
  };
  EXPECT_THAT(ChecksOf(begun().text()), ElementsAre("SharpHangs"));
  EXPECT_THAT(Only(begun().text()), HasSubstr("rank 0 (n0:100) and 1 more: the log ends while"));
  EXPECT_THAT(ChecksOf(begun().All("rank 0 Connected CollNet").End().text()),
              ElementsAre("NcclLog"));
  EXPECT_THAT(
      ChecksOf(begun()
                   .All("Cannot initialize CollNet, using point-to-point network instead", "WARN")
                   .End()
                   .text()),
      ElementsAre("SharpNotUsed"));
}

TEST(NcclLogTest, SharpThatNobodyAskedForIsNotMissed) {
  for (const char* value : {"", "0"}) {
    Job job;
    if (*value != '\0') job.Env("NCCL_COLLNET_ENABLE", value);
    EXPECT_THAT(ChecksOf(job.All("Rank 1: 0 CollNet devices").Start("IB").text()),
                ElementsAre("NcclLog"));
  }
}

}  // namespace
}  // namespace railhead::cli
