// SPDX-License-Identifier: Apache-2.0
#include "operator/config/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "jobs/job.h"
#include "kube/json.h"

namespace railhead::op {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

std::string Error(absl::string_view text) {
  const auto config = ParseInjectionConfig(text, "operator.yaml");
  EXPECT_EQ(config.status().code(), absl::StatusCode::kInvalidArgument) << text;
  return std::string(config.status().message());
}

TEST(ParseInjectionConfigTest, ReadsAllFields) {
  const auto config = ParseInjectionConfig(R"(
environment:
  NCCL_IB_TC: "106"
  NCCL_BUFFSIZE: 8388608
  NCCL_DEBUG: INFO
  EMPTY: ""
  FLAG: true
rendezvousPort: 12345
excludedNamespaces: [kube-system, railhead]
verdicts: false
tellMissedPods: false
memlockRaised: true
gangs: true
gangKinds: [JobSet, Job]
gangReserveAfter: 1h30m
topology: true
publishTopology: true
)",
                                           "x");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_THAT(config->environment,
              ElementsAre(Pair("EMPTY", ""), Pair("FLAG", "true"), Pair("NCCL_BUFFSIZE", "8388608"),
                          Pair("NCCL_DEBUG", "INFO"), Pair("NCCL_IB_TC", "106")));
  EXPECT_EQ(config->rendezvous_port, 12345);
  EXPECT_THAT(config->excluded_namespaces, ElementsAre("kube-system", "railhead"));
  EXPECT_THAT(config->namespaces, IsEmpty());
  EXPECT_FALSE(config->verdicts);
  EXPECT_FALSE(config->tell_missed_pods);
  EXPECT_TRUE(config->memlock_raised);
  EXPECT_TRUE(config->gangs);
  EXPECT_EQ(config->gang_kinds, (std::set<std::string>{"Job", "JobSet"}));
  EXPECT_EQ(config->gang_reserve_after, absl::Minutes(90));
  EXPECT_TRUE(config->topology);
  EXPECT_TRUE(config->publish_topology);
}

TEST(ParseInjectionConfigTest, NothingIsAConfigurationToo) {
  for (const char* text : {"", "# only a comment\n", "{}", "environment: {}\n"}) {
    const auto config = ParseInjectionConfig(text, "x");
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_THAT(config->environment, IsEmpty());
    EXPECT_EQ(config->rendezvous_port, 29500);
    EXPECT_THAT(config->excluded_namespaces, IsEmpty());
    EXPECT_TRUE(config->verdicts);
    EXPECT_TRUE(config->tell_missed_pods);
    EXPECT_FALSE(config->memlock_raised);
    EXPECT_FALSE(config->gangs);
    EXPECT_FALSE(config->topology);
    EXPECT_FALSE(config->publish_topology);
  }
}

TEST(ParseInjectionConfigTest, NamesFileLineAndField) {
  EXPECT_EQ(Error("verdicts: true\nenviroment: {}"),
            "operator.yaml:2: enviroment: this field is not known; did you mean environment?");
  EXPECT_THAT(
      Error("somethingElse: 1"),
      HasSubstr("somethingElse: this field is not known; the fields here are environment, "
                "rendezvousPort, excludedNamespaces, namespaces, verdicts, "
                "tellMissedPods, memlockRaised, gangs, gangKinds, gangReserveAfter, rdmaResources, "
                "topology and publishTopology"));
  EXPECT_THAT(Error("gangs:"), HasSubstr("operator.yaml:1: gangs: has no value"));
  EXPECT_THAT(Error("rdmaResources: rdma/*"), HasSubstr("rdmaResources: must be a list"));
  EXPECT_THAT(Error("rdmaResources: [1]"), HasSubstr("rdmaResources[0]: must be text"));
  EXPECT_THAT(Error("rdmaResources: [rdma]"), HasSubstr("rdmaResources: 'rdma' must be the name"));
  EXPECT_THAT(Error("rdmaResources: []"), HasSubstr("rdmaResources: must list 1 to"));
  EXPECT_THAT(Error("[]"), HasSubstr("the document: must be a mapping"));
  EXPECT_THAT(Error("a: 1\nb: ["), HasSubstr("operator.yaml:2: the document: is not YAML"));
  EXPECT_THAT(Error("{}\n---\n{}"), HasSubstr("a second document begins; keep one"));
  EXPECT_THAT(Error("excludedNamespaces: kube-system"), HasSubstr("excludedNamespaces: must be a"));
  EXPECT_THAT(Error("excludedNamespaces: [[a]]"), HasSubstr("excludedNamespaces[0]: must be text"));
  EXPECT_THAT(Error("excludedNamespaces: ['']"), HasSubstr("excludedNamespaces[0]: must "));
  EXPECT_THAT(Error("namespaces: team"), HasSubstr("namespaces: must be a list"));
  EXPECT_THAT(Error("gangs: true\nnamespaces: [team]"),
              HasSubstr("operator.yaml:2: namespaces: cannot be set with gangs: true"));
  EXPECT_THAT(Error("verdicts: yes please"), HasSubstr("verdicts: must be true or false"));
  EXPECT_THAT(Error("gangs: 1"), HasSubstr("gangs: must be true or false"));
  EXPECT_THAT(Error("gangKinds: JobSet"), HasSubstr("gangKinds: must be a list"));
  EXPECT_THAT(Error("gangKinds: [Jobset]"), HasSubstr("gangKinds[0]: \"Jobset\" is not known here; "
                                                      "did you mean JobSet?"));
  EXPECT_THAT(Error("gangKinds: [Deployment]"), HasSubstr("\"Deployment\" is not known here; "));
  EXPECT_THAT(Error("gangKinds: [1]"),
              HasSubstr("write JAXJob, Job, JobSet, LeaderWorkerSet, MPIJob, PaddleJob, PodGroup, "
                        "PyTorchJob, TFJob or XGBoostJob"));
  for (const char* wait : {"10", "0", "soon", "-1m", "{}", "''"}) {
    EXPECT_THAT(Error(absl::StrCat("gangReserveAfter: ", wait)),
                HasSubstr("gangReserveAfter: must be a duration such as 10m or 1h30m, or never"));
  }
  EXPECT_THAT(Error("topology: 1"), HasSubstr("topology: must be true or false"));
  EXPECT_THAT(Error("publishTopology: true"), HasSubstr("publishTopology: needs topology"));
  EXPECT_THAT(Error("environment: [A]"), HasSubstr("environment: must be a mapping"));
  EXPECT_THAT(Error("environment: {A: [1]}"), HasSubstr("environment.A: must be text"));
  EXPECT_THAT(Error("environment: {A: 1.50}"), HasSubstr("environment.A: must be text"));
  EXPECT_THAT(Error("environment: {A: }"), HasSubstr("environment.A: has no value"));
  EXPECT_THAT(Error("environment: {A: x, A: y}"), HasSubstr("appears a second time"));
  EXPECT_THAT(Error("environment: {A: \"a\\0b\"}"), HasSubstr("zero byte"));
  for (const char* name : {"1A", "A B", "A=B", "\"\"", "A-B"}) {
    EXPECT_THAT(Error(std::string("environment: {") + name + ": x}"),
                HasSubstr("is not the name of an environment variable"));
  }
  for (const char* name :
       {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "RAILHEAD_JOB", "RAILHEAD_POD",
        "RAILHEAD_NODE", "RAILHEAD_NOT_DONE", "RAILHEAD_METRICS_PORT"}) {
    EXPECT_THAT(Error(std::string("environment: {") + name + ": x}"),
                HasSubstr(std::string("environment.") + name + ": cannot be set here"));
  }
  for (const char* port :
       {"0", "65536", "-1", "text", "\"29500\"", "1.5", "[1]", "1e99", "99999999999999999999"}) {
    EXPECT_THAT(Error(std::string("rendezvousPort: ") + port),
                HasSubstr("rendezvousPort: must be a whole number from 1 to 65535"));
  }
}

TEST(ParseInjectionConfigTest, TheChartKnowsTheSameKindsOfJobs) {
  std::ifstream file(RAILHEAD_SOURCE_DIR "/charts/railhead/values.schema.json");
  const kube::Json kinds = kube::Json::parse(file).at(kube::Json::json_pointer(
      "/properties/operator/properties/gangs/properties/kinds/items/enum"));
  EXPECT_THAT(kinds.get<std::vector<std::string>>(),
              ::testing::UnorderedElementsAreArray(jobs::KindNames()));
}

TEST(LoadInjectionConfigTest, NamesTheFile) {
  const std::string path =
      ::testing::TempDir() + "railhead-operator-config-" + std::to_string(getpid());
  EXPECT_TRUE(absl::IsNotFound(LoadInjectionConfig(path).status()));
  std::ofstream(path) << "environment: {A: b}";
  ASSERT_TRUE(LoadInjectionConfig(path).ok());
  std::ofstream(path) << std::string(2'000'000, '#');
  EXPECT_THAT(std::string(LoadInjectionConfig(path).status().message()),
              HasSubstr("has more than"));
  std::filesystem::remove(path);
  EXPECT_FALSE(LoadInjectionConfig(::testing::TempDir()).ok());
}

}  // namespace
}  // namespace railhead::op
