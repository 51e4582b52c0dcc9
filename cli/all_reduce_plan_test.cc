// SPDX-License-Identifier: Apache-2.0
#include "cli/all_reduce_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "cli/commands.h"
#include "cli/folder_for_test.h"
#include "cli/plan.h"

namespace railhead::cli {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kTwoLeaves[] = R"(apiVersion: railhead.io/v1alpha1
kind: FabricModel
metadata: {name: small}
spec:
  topology: rail-optimized
  levels: [spine, leaf]
  rails: 8
  linkGbps: {node: 200, leaf: 800, spine: 6400}
  domains:
  - name: sp00
    domains:
    - name: lf000
      nodes: [{name: a0, gpus: 8, hcas: 8}, {name: a1, gpus: 8, hcas: 8, deadRails: [2]}]
    - name: lf001
      nodes: [{name: b0, gpus: 8, hcas: 8}, {name: b1, gpus: 8, hcas: 8}]
)";

constexpr char kGang[] = R"(apiVersion: railhead.io/v1alpha1
kind: PlacementRequest
metadata: {name: job-a}
spec: {pods: PODS, gpusPerPod: GPUS, hcasPerPod: HCAS}
)";

class AllReducePlanTest : public ::testing::Test {
 protected:
  AllReducePlanTest() {
    options_.fabric = folder_.Write("fabric.yaml", kTwoLeaves);
    options_.request = folder_.Path("request.yaml");
    options_.all_reduce.sizes = {65536, uint64_t{1} << 30};
    options_.json = true;
    Request(2, 8, 7);
  }

  void Request(int pods, int gpus, int hcas) {
    folder_.Write("request.yaml", absl::StrReplaceAll(kGang, {{"PODS", absl::StrCat(pods)},
                                                              {"GPUS", absl::StrCat(gpus)},
                                                              {"HCAS", absl::StrCat(hcas)}}));
  }

  int Run() {
    out_.str("");
    err_.str("");
    return RunPlan(
        options_, [] { return 0.0; }, out_, err_);
  }

  json Estimate() {
    EXPECT_EQ(Run(), kPlaced) << err_.str();
    return json::parse(out_.str())["allReduce"];
  }

  const FolderForTest folder_;
  PlanOptions options_;
  std::ostringstream out_;
  std::ostringstream err_;
};

TEST_F(AllReducePlanTest, IsOfTheNodesAndRailsThatWereFound) {
  json estimate = Estimate();
  EXPECT_EQ(estimate["nodes"], 2);
  EXPECT_EQ(estimate["gpusPerNode"], 8);
  EXPECT_EQ(estimate["railsPerNode"], 7);
  EXPECT_DOUBLE_EQ(estimate["nodeBytesPerSecond"].get<double>(), 7 * 200e9 / 8 * 0.9);
  EXPECT_DOUBLE_EQ(estimate["gpuBytesPerSecond"].get<double>(), 370e9);
  EXPECT_EQ(estimate["limitedBy"], "");
  ASSERT_EQ(estimate["sizes"].size(), 2U);
  EXPECT_EQ(estimate["sizes"][0]["bytes"], 65536);
  EXPECT_EQ(estimate["sizes"][0]["ring"]["protocol"], "LL");
  EXPECT_EQ(estimate["sizes"][0]["sharpFromNodes"], 8);
  EXPECT_EQ(estimate["sizes"][1]["sharp"]["protocol"], "Simple");
  // Two nodes on one leaf are not limited by its uplinks, but three are on two leaves.
  Request(3, 8, 7);
  estimate = Estimate();
  EXPECT_EQ(estimate["nodes"], 3);
  EXPECT_EQ(estimate["limitedBy"], "leaf");
  EXPECT_DOUBLE_EQ(estimate["nodeBytesPerSecond"].get<double>(), 800e9 / 8 * 0.9);
}

TEST_F(AllReducePlanTest, PodsOfANodeAddTheirGpusAndRails) {
  Request(4, 4, 3);
  const json estimate = Estimate();
  EXPECT_EQ(estimate["nodes"], 2);
  EXPECT_EQ(estimate["gpusPerNode"], 8);
  EXPECT_EQ(estimate["railsPerNode"], 6);
}

TEST_F(AllReducePlanTest, OneNodeHasNoTreeAndNoSharp) {
  Request(1, 8, 8);
  const json estimate = Estimate();
  EXPECT_EQ(estimate["nodes"], 1);
  EXPECT_TRUE(estimate["sizes"][1]["tree"].is_null());
  EXPECT_TRUE(estimate["sizes"][1]["sharp"].is_null());
  EXPECT_EQ(estimate["sizes"][1]["sharpFromNodes"], 2);  // it would pay
}

TEST_F(AllReducePlanTest, TheFlagsReplaceTheFabricsRates) {
  options_.all_reduce.rate = 400;
  options_.all_reduce.efficiency = 0.5;
  options_.all_reduce.gpu_gbps = 8;
  const json estimate = Estimate();
  EXPECT_DOUBLE_EQ(estimate["nodeBytesPerSecond"].get<double>(), 7 * 400e9 / 8 * 0.5);
  EXPECT_DOUBLE_EQ(estimate["gpuBytesPerSecond"].get<double>(), 1e9);
}

TEST_F(AllReducePlanTest, TheTableHasARowForEachSize) {
  options_.json = false;
  options_.all_reduce.sizes = {1000, 1 << 20, uint64_t{1} << 30};
  EXPECT_EQ(Run(), kPlaced) << err_.str();
  EXPECT_THAT(out_.str(),
              HasSubstr("all-reduce over 2 nodes of 8 GPUs and 7 rails, estimated: a node sends "
                        "157.5 GB/s, a GPU 370 GB/s\n"
                        "  size      ring              tree              SHARP             SHARP "
                        "is fastest\n"
                        "  1000 B    40.02 us LL "));
  EXPECT_THAT(out_.str(), HasSubstr("  1 MiB     "));
  EXPECT_THAT(out_.str(), HasSubstr("  6.861 ms Simple   from 2 nodes on\n"));
  Request(3, 8, 7);
  EXPECT_EQ(Run(), kPlaced);
  EXPECT_THAT(out_.str(), HasSubstr("a node sends 90 GB/s (uplinks of leaf), a GPU"));
  options_.all_reduce.sizes.clear();
  EXPECT_EQ(Run(), kPlaced);
  EXPECT_THAT(out_.str(), Not(HasSubstr("SHARP")));
}

TEST_F(AllReducePlanTest, AGangWithoutGpusOrHcasIsRefused) {
  Request(2, 0, 2);
  EXPECT_EQ(Run(), kBadInput);
  EXPECT_EQ(err_.str(),
            "railhead plan: --all-reduce: the pods of job-a have no GPU; give "
            "gpusPerPod and hcasPerPod in the request\n");
  Request(2, 8, 0);
  EXPECT_EQ(Run(), kBadInput);
  EXPECT_THAT(err_.str(), HasSubstr("have no HCA"));
}

TEST_F(AllReducePlanTest, AGangWithoutAPlaceHasNoEstimate) {
  Request(9, 8, 8);
  EXPECT_EQ(Run(), kNotPlaced);
  EXPECT_FALSE(json::parse(out_.str()).contains("allReduce"));
}

class AllReduceFlagsTest : public ::testing::Test {
 protected:
  // Returns the error, or "" if the arguments are accepted.
  std::string Parse(std::vector<std::string> arguments) {
    line_ = {};
    const std::unique_ptr<CLI::App> app = MakeApp("railhead", line_);
    std::reverse(arguments.begin(), arguments.end());
    try {
      app->parse(arguments);
      CheckTogether(*app, line_);
    } catch (const CLI::ParseError& error) {
      return error.what();
    }
    return "";
  }

  CommandLine line_;
};

TEST_F(AllReduceFlagsTest, SizesHaveUnits) {
  EXPECT_EQ(Parse({"plan", "--fabric", "f", "--request", "r", "--all-reduce", "8,64KiB,1g",
                   "--rate-gbps", "200", "--gpu-gbps", "1000"}),
            "");
  EXPECT_EQ(line_.plan.all_reduce.sizes, (std::vector<uint64_t>{8, 64 << 10, uint64_t{1} << 30}));
  EXPECT_EQ(line_.size.rate, 200);
  EXPECT_EQ(Parse({"plan", "--replay", "d", "--all-reduce", "1MiB", "--efficiency", "0.8"}), "");
  for (const char* wrong : {"0", "-1", "x", "1.5.2", "9999TiB"}) {
    EXPECT_THAT(Parse({"plan", "--fabric", "f", "--request", "r", "--all-reduce", wrong}),
                HasSubstr("--all-reduce"))
        << wrong;
  }
}

TEST_F(AllReduceFlagsTest, FlagsOfAnEstimateNeedOne) {
  EXPECT_THAT(Parse({"plan", "--fabric", "f", "--request", "r", "--rate-gbps", "200"}),
              HasSubstr("--rate-gbps requires --parameters or --all-reduce"));
  EXPECT_THAT(Parse({"plan", "--replay", "d", "--efficiency", "0.8"}),
              HasSubstr("--efficiency requires --parameters or --all-reduce"));
  EXPECT_THAT(Parse({"plan", "--fabric", "f", "--request", "r", "--gpu-gbps", "200"}),
              HasSubstr("--all-reduce"));
  EXPECT_EQ(Parse({"plan", "--parameters", "7B", "--within", "1s", "--rate-gbps", "200"}), "");
  EXPECT_THAT(Parse({"plan", "--parameters", "7B", "--within", "1s", "--all-reduce", "1MiB"}),
              HasSubstr("excludes"));
}

}  // namespace
}  // namespace railhead::cli
