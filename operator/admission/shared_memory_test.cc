// SPDX-License-Identifier: Apache-2.0
#include "operator/admission/shared_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "operator/objects/rdma_containers.h"

namespace railhead::op {
namespace {

using kube::Json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const Json kVolume = Json::parse(
    R"({"name": "railhead-shm", "emptyDir": {"medium": "Memory", "sizeLimit": "16Gi"}})");
const Json kMount = Json::parse(R"({"name": "railhead-shm", "mountPath": "/dev/shm"})");

// A pod spec whose containers all ask for RDMA.
Json Spec(const char* rest) {
  Json spec = Json::parse(R"({"containers": [
    {"name": "a", "resources": {"limits": {"rdma/hca": "1"}}},
    {"name": "b", "resources": {"limits": {"rdma/hca": "1"}}}]})");
  spec.merge_patch(Json::parse(rest));
  return spec;
}

struct Result {
  Json spec;
  std::vector<std::string> warnings;
  absl::Status status;
};

Result Add(const Json& spec) {
  Draft draft(Json::object({{"spec", spec}}));
  const absl::Status status =
      AddSharedMemory("16Gi", *FindRdmaContainers(spec, RdmaResources()), draft);
  return {draft.object()["spec"], draft.warnings(), status};
}

TEST(AddSharedMemoryTest, GivesAllContainersOneVolume) {
  for (const char* rest : {"{}", R"({"volumes": null})", R"({"volumes": []})"}) {
    const Result result = Add(Spec(rest));
    EXPECT_TRUE(result.status.ok()) << result.status;
    EXPECT_THAT(result.warnings, IsEmpty());
    EXPECT_EQ(result.spec["volumes"], Json::array({kVolume}));
    for (const Json& container : result.spec["containers"]) {
      EXPECT_EQ(container["volumeMounts"], Json::array({kMount}));
    }
    EXPECT_EQ(Add(result.spec).spec, result.spec);
  }
}

TEST(AddSharedMemoryTest, KeepsWhatIsThere) {
  Json spec = Spec(R"({"volumes": [{"name": "data", "emptyDir": {}}]})");
  spec["containers"][0]["volumeMounts"] =
      Json::parse(R"([{"name": "data", "mountPath": "/data"}])");
  const Result result = Add(spec);
  EXPECT_EQ(result.spec["volumes"], Json::array({spec["volumes"][0], kVolume}));
  EXPECT_EQ(result.spec["containers"][0]["volumeMounts"],
            Json::array({spec["containers"][0]["volumeMounts"][0], kMount}));
  EXPECT_EQ(Add(result.spec).spec, result.spec);
}

TEST(AddSharedMemoryTest, TheUsersOwnMountWins) {
  for (const char* path : {"/dev/shm", "/dev/shm/", "/dev/shm//"}) {
    Json spec = Spec(R"({"volumes": [{"name": "shm", "emptyDir": {"medium": "Memory"}}]})");
    spec["containers"][0]["volumeMounts"] = {{{"name", "shm"}, {"mountPath", path}}};
    Result result = Add(spec);
    EXPECT_EQ(result.spec["containers"][0], spec["containers"][0]);
    EXPECT_EQ(result.spec["containers"][1]["volumeMounts"], Json::array({kMount}));
    // Where all have one, there is no volume either.
    spec["containers"][1]["volumeMounts"] = spec["containers"][0]["volumeMounts"];
    EXPECT_EQ(Add(spec).spec, spec);
  }
}

TEST(AddSharedMemoryTest, TheHostsMemoryStays) {
  const Json spec = Spec(R"({"hostIPC": true})");
  EXPECT_EQ(Add(spec).spec, spec);
  EXPECT_NE(Add(Spec(R"({"hostIPC": false})")).spec, Spec(R"({"hostIPC": false})"));
}

TEST(AddSharedMemoryTest, AnotherVolumeOfItsName) {
  const Json spec = Spec(R"({"volumes": [{"name": "railhead-shm", "hostPath": {"path": "/x"}}]})");
  const Result result = Add(spec);
  EXPECT_EQ(result.spec, spec);
  EXPECT_THAT(result.warnings, ElementsAre(HasSubstr("already has a volume railhead-shm")));
}

TEST(AddSharedMemoryTest, RefusesWhatIsNoList) {
  Json spec = Spec(R"({"volumes": {}})");
  EXPECT_THAT(std::string(Add(spec).status.message()), HasSubstr("/spec/volumes is not a list"));
  spec = Spec("{}");
  spec["containers"][1]["volumeMounts"] = "x";
  EXPECT_THAT(std::string(Add(spec).status.message()),
              HasSubstr("/spec/containers/1/volumeMounts is not a list"));
}

}  // namespace
}  // namespace railhead::op
