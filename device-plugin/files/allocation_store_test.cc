// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/files/allocation_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "device-plugin/devices/device_list.h"
#include "fabric/inventory.h"
#include "fabric/pod_rails.h"

namespace railhead::device_plugin {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr char kResource[] = "rdma/hca";

// HCAs "m0" to "m3", each on a NUMA node of its own with GPU "g0" to "g3".
DeviceSnapshot FourHcas(int slots) {
  DeviceSnapshot snapshot;
  for (int i = 0; i < 4; ++i) {
    fabric::Hca hca;
    hca.name = absl::StrCat("m", i);
    hca.numa_node = i;
    hca.rail = i;
    hca.ports = {{.port = 1, .state = "ACTIVE", .link_layer = "InfiniBand", .rate_gbps = 400}};
    hca.char_devices = {absl::StrCat("/dev/infiniband/uverbs", i)};
    snapshot.inventory.hcas.push_back(hca);
    snapshot.inventory.gpus.push_back({"10de", absl::StrCat("g", i), i, {}});
    for (int slot = 0; slot < slots; ++slot) {
      snapshot.devices.push_back({DeviceId(hca.name, "", slots == 1 ? -1 : slot), hca});
    }
  }
  return snapshot;
}

class AllocationStoreTest : public ::testing::Test {
 protected:
  AllocationStoreTest() : base_(fs::temp_directory_path() / "railhead-store-XXXXXX") {
    EXPECT_NE(mkdtemp(base_.data()), nullptr);
    cdi_ = base_ + "/cdi";
    fs::create_directories(cdi_);
    files_ = std::make_unique<RailsFiles>(base_ + "/railhead");
    Restart();
  }
  ~AllocationStoreTest() override { fs::remove_all(base_); }

  void Restart() {
    auto store = AllocationStore::Make({base_ + "/railhead", cdi_, "node-1"}, files_.get());
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
  }

  // Returns the spec's path.
  std::string Add(const DeviceSnapshot& snapshot, const std::vector<std::string>& ids) {
    const absl::StatusOr<std::string> name = store_->Add(snapshot, kResource, ids);
    EXPECT_TRUE(name.ok()) << name.status();
    if (!name.ok()) return "";
    return absl::StrCat(cdi_, "/railhead.io-hca_", absl::StripPrefix(*name, "railhead.io/hca="),
                        ".json");
  }

  static ContainerDevices Container(const std::string& pod, const std::vector<std::string>& ids,
                                    const std::vector<std::string>& gpus) {
    ContainerDevices container{"ns", pod, "main", {{kResource, ids}}};
    if (!gpus.empty()) container.devices["amd.com/gpu"] = gpus;
    return container;
  }

  absl::Status Prepare(const DeviceSnapshot& snapshot, const std::vector<std::string>& ids,
                       const std::vector<ContainerDevices>& listed) {
    return store_->Prepare(snapshot, kResource, ids, {listed, {}});
  }

  static std::string Read(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

  // NCCL_IB_HCA in the spec; the device nodes and rails.json must be of the same HCAs.
  static std::string HcasIn(const std::string& spec) {
    const nlohmann::json read = nlohmann::json::parse(Read(spec), nullptr, false);
    if (!read.is_object()) return "no spec";
    EXPECT_EQ(
        absl::StrCat("railhead.io-hca_", read["devices"][0]["name"].get<std::string>(), ".json"),
        fs::path(spec).filename());
    const nlohmann::json& edits = read["devices"][0]["containerEdits"];
    const absl::StatusOr<fabric::PodRails> rails =
        fabric::ParsePodRails(Read(edits["mounts"][0]["hostPath"].get<std::string>()));
    EXPECT_TRUE(rails.ok()) << rails.status();
    std::string env = "NCCL_IB_HCA==";
    std::vector<std::string> nodes;
    for (const fabric::PodRail& rail : rails->rails) {
      absl::StrAppend(&env, nodes.empty() ? "" : ",", rail.device, ":", rail.port, ":", rail.rail);
      nodes.push_back(rail.char_devices.at(0));
    }
    EXPECT_EQ(edits["env"][0], env);
    EXPECT_EQ(edits["deviceNodes"].size(), nodes.size());
    for (size_t i = 0; i < nodes.size(); ++i) EXPECT_EQ(edits["deviceNodes"][i]["path"], nodes[i]);
    return env.substr(13);
  }

  std::vector<std::string> Specs() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(cdi_)) names.push_back(entry.path());
    std::sort(names.begin(), names.end());
    return names;
  }

  std::vector<std::string> Records() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(base_ + "/railhead")) {
      if (entry.path().filename().string().starts_with("allocation-")) {
        names.push_back(entry.path());
      }
    }
    return names;
  }

  std::string base_;
  std::string cdi_;
  std::unique_ptr<RailsFiles> files_;
  std::unique_ptr<AllocationStore> store_;
  DeviceSnapshot shared_ = FourHcas(2);
  DeviceSnapshot whole_ = FourHcas(1);
};

TEST_F(AllocationStoreTest, EachAllocationHasANameOfItsOwn) {
  std::set<std::string> specs;
  for (int i = 0; i < 50; ++i) {
    const std::string spec = Add(whole_, {"m1", "m0"});
    EXPECT_EQ(HcasIn(spec), "m0:1:0,m1:1:1");
    specs.insert(spec);
  }
  EXPECT_EQ(specs.size(), 50U);
  EXPECT_THAT(Specs(), ::testing::ElementsAreArray(specs));  // and nothing unfinished beside
  EXPECT_EQ(Records().size(), 50U);
  struct stat info = {};
  ASSERT_EQ(stat(specs.begin()->c_str(), &info), 0);
  EXPECT_EQ(info.st_mode, mode_t{S_IFREG | 0644});
}

TEST_F(AllocationStoreTest, WhatCannotBeAllocatedLeavesNothing) {
  EXPECT_TRUE(absl::IsNotFound(store_->Add(whole_, kResource, {"m9"}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(store_->Add(whole_, kResource, {}).status()));
  EXPECT_FALSE(fs::exists(base_ + "/railhead"));
  EXPECT_THAT(Specs(), IsEmpty());
  // A folder that vanishes while we run.
  fs::remove(cdi_);
  const absl::Status status = store_->Add(whole_, kResource, {"m0"}).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr(cdi_));
  EXPECT_THAT(Records(), IsEmpty());
}

TEST_F(AllocationStoreTest, AStartWritesTheDevicesAsTheyAreNow) {
  const std::string spec = Add(whole_, {"m1"});
  whole_.inventory.hcas[1].char_devices = {"/dev/infiniband/uverbs7"};
  ASSERT_TRUE(Prepare(whole_, {"m1"}, {Container("p", {"m1"}, {"g0"})}).ok());
  EXPECT_THAT(Read(spec), HasSubstr("uverbs7"));
  EXPECT_EQ(HcasIn(spec), "m1:1:1");  // it is the container's alone, however far from its GPU
  // The node has started anew: the specs' folder is empty, the records are not.
  fs::remove(spec);
  Restart();
  whole_.inventory.hcas[1].char_devices = {"/dev/infiniband/uverbs3"};
  ASSERT_TRUE(Prepare(whole_, {"m1"}, {}).ok());
  EXPECT_THAT(Read(spec), HasSubstr("uverbs3"));
  // A port that is down is no reason not to start; a node that is not there is.
  whole_.inventory.hcas[1].health.Set(fabric::Stage::kRules, "it has vanished");
  EXPECT_TRUE(Prepare(whole_, {"m1"}, {}).ok());
  whole_.inventory.hcas[1].char_devices.clear();
  const absl::Status status = Prepare(whole_, {"m1"}, {});
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("m1 has no device node: it has vanished"));
  EXPECT_TRUE(absl::IsFailedPrecondition(Prepare(DeviceSnapshot(), {"m1"}, {})));
}

TEST_F(AllocationStoreTest, OddIdsAreAClearFailure) {
  Add(shared_, {"m0-s0", "m1-s0"});
  for (const std::vector<std::string>& ids :
       std::vector<std::vector<std::string>>{{},
                                             {"m0-s0"},
                                             {"m0-s0", "m1-s0", "m2-s0"},
                                             {"m3-s1"},
                                             {"", "\xff"},
                                             {"../../etc/passwd"}}) {
    EXPECT_TRUE(absl::IsNotFound(Prepare(shared_, ids, {})));
    EXPECT_TRUE(absl::IsNotFound(store_->Prepare(shared_, kResource, ids, {})));
  }
  EXPECT_TRUE(absl::IsNotFound(store_->Prepare(shared_, "rdma/other", {"m0-s0", "m1-s0"}, {})));
  // In any order, and each of them once or more, they are the same.
  EXPECT_TRUE(Prepare(shared_, {"m1-s0", "m0-s0", "m1-s0"}, {}).ok());
  // Allocated before --cdi-dir was given: kubelet remembers plain device nodes.
  EXPECT_TRUE(Prepare(shared_, {"m3-s1"}, {Container("p", {"m3-s1"}, {})}).ok());
}

TEST_F(AllocationStoreTest, BindsAtTheFirstStartAndForLife) {
  const std::string spec = Add(shared_, {"m0-s0"});
  EXPECT_EQ(HcasIn(spec), "m0:1:0");
  const std::vector<ContainerDevices> listed = {Container("p", {"m0-s0"}, {"g2"})};
  ASSERT_TRUE(Prepare(shared_, {"m0-s0"}, listed).ok());
  EXPECT_EQ(HcasIn(spec), "m2:1:2");
  EXPECT_THAT(store_->BoundElsewhere(kResource), ElementsAre(Pair("m0-s0", "m2")));
  EXPECT_THAT(AsBound(store_->records(), listed)[0].devices.at(kResource), ElementsAre("m2-s0"));

  Restart();  // nothing is known of kubelet yet
  EXPECT_THAT(store_->BoundElsewhere(kResource), ElementsAre(Pair("m0-s0", "m2")));
  ASSERT_TRUE(Prepare(shared_, {"m0-s0"}, {Container("p", {"m0-s0"}, {"g3"})}).ok());
  EXPECT_EQ(HcasIn(spec), "m2:1:2");
  shared_.inventory.hcas[2].health.Set(fabric::Stage::kRules, "port 1 is DOWN");
  ASSERT_TRUE(Prepare(shared_, {"m0-s0"}, listed).ok());
  EXPECT_EQ(HcasIn(spec), "m0:1:0");
  EXPECT_THAT(store_->BoundElsewhere(kResource), IsEmpty());
  shared_.inventory.hcas[2].health = {};
  ASSERT_TRUE(Prepare(shared_, {"m0-s0"}, listed).ok());
  EXPECT_EQ(HcasIn(spec), "m0:1:0");  // it is well where it is
}

// The agent asked before the container was there, and is slower than its start.
TEST_F(AllocationStoreTest, AnOlderListOfKubeletDoesNotReplaceALaterOne) {
  Add(shared_, {"m0-s0"});
  const absl::Time before = absl::UnixEpoch();
  const std::vector<ContainerDevices> listed = {Container("p", {"m0-s0"}, {"g2"})};
  const KubeletView later{listed, {}, before + absl::Seconds(1)};
  ASSERT_TRUE(store_->Prepare(shared_, kResource, {"m0-s0"}, later).ok());
  store_->Look({}, before);
  EXPECT_THAT(store_->BoundElsewhere(kResource), ElementsAre(Pair("m0-s0", "m2")));
  store_->Look({}, before + absl::Seconds(2));
  EXPECT_THAT(store_->BoundElsewhere(kResource), IsEmpty());
}

TEST_F(AllocationStoreTest, SpecsOfSeveralResourcesOfAContainerTellOfAllItsHcas) {
  const DeviceSnapshot alone = FourHcas(1);
  const std::string fast = Add(alone, {"m1", "m2"});
  const absl::StatusOr<std::string> name = store_->Add(alone, "rdma/storage", {"m0"});
  ASSERT_TRUE(name.ok()) << name.status();
  const std::string storage = absl::StrCat(cdi_, "/railhead.io-hca_",
                                           absl::StripPrefix(*name, "railhead.io/hca="), ".json");
  ContainerDevices container = Container("p", {"m1", "m2"}, {});
  container.devices["rdma/storage"] = {"m0"};
  // Another container's are none of its business.
  const std::string another = Add(alone, {"m3"});
  const std::vector<ContainerDevices> listed = {container, Container("q", {"m3"}, {})};
  ASSERT_TRUE(Prepare(alone, {"m1", "m2"}, listed).ok());
  ASSERT_TRUE(store_->Prepare(alone, "rdma/storage", {"m0"}, {listed, {}}).ok());
  EXPECT_EQ(HcasIn(fast), "m0:1:0,m1:1:1,m2:1:2");
  EXPECT_EQ(HcasIn(storage), "m0:1:0,m1:1:1,m2:1:2");
  EXPECT_EQ(HcasIn(another), "m3:1:3");
  // It starts again while kubelet tells nothing.
  Restart();
  ASSERT_TRUE(store_->Prepare(alone, "rdma/storage", {"m0"}, {}).ok());
  EXPECT_EQ(HcasIn(storage), "m0:1:0,m1:1:1,m2:1:2");
}

TEST_F(AllocationStoreTest, WithoutKubeletsWordItIsBoundAtALaterStart) {
  const std::string spec = Add(shared_, {"m0-s0"});
  ASSERT_TRUE(store_->Prepare(shared_, kResource, {"m0-s0"}, {}).ok());
  EXPECT_EQ(HcasIn(spec), "m0:1:0");
  ASSERT_TRUE(Prepare(shared_, {"m0-s0"}, {Container("p", {"m0-s0"}, {"g1"})}).ok());
  EXPECT_EQ(HcasIn(spec), "m1:1:1");
}

TEST_F(AllocationStoreTest, NoMoreContainersThanSlotsAreBoundToAnHca) {
  std::vector<ContainerDevices> listed;
  std::vector<std::string> specs;
  for (const char* id : {"m1-s0", "m2-s0", "m3-s0"}) {
    specs.push_back(Add(shared_, {id}));
    listed.push_back(Container(absl::StrCat("p", id), {id}, {"g0"}));
  }
  for (const char* id : {"m1-s0", "m2-s0", "m3-s0"}) {
    ASSERT_TRUE(Prepare(shared_, {id}, listed).ok());
  }
  EXPECT_EQ(HcasIn(specs[0]), "m0:1:0");
  EXPECT_EQ(HcasIn(specs[1]), "m0:1:0");
  EXPECT_EQ(HcasIn(specs[2]), "m3:1:3");  // no other is nearer
}

TEST_F(AllocationStoreTest, AnInitContainerAndItsSuccessorAreBoundAlike) {
  const std::string init = Add(shared_, {"m0-s0"});
  const std::string main = Add(shared_, {"m0-s0"});
  ASSERT_TRUE(Prepare(shared_, {"m0-s0"}, {Container("p", {"m0-s0"}, {"g1"})}).ok());
  EXPECT_EQ(HcasIn(init), "m1:1:1");
  EXPECT_EQ(HcasIn(main), "m1:1:1");
}

TEST_F(AllocationStoreTest, ANewAllocationOfTheSameIdsBeginsAnew) {
  Add(shared_, {"m0-s0"});
  const std::vector<ContainerDevices> listed = {Container("p", {"m0-s0"}, {"g1"})};
  ASSERT_TRUE(Prepare(shared_, {"m0-s0"}, listed).ok());
  const std::string spec = Add(shared_, {"m0-s0"});
  EXPECT_EQ(HcasIn(spec), "m0:1:0");
  EXPECT_THAT(store_->BoundElsewhere(kResource), IsEmpty());
}

TEST_F(AllocationStoreTest, RemovesWhatNobodyHolds) {
  const std::string used = Add(shared_, {"m0-s0"});
  const std::string unused = Add(shared_, {"m1-s0"});
  EXPECT_TRUE(store_->HasFilesUntil(absl::InfiniteFuture()));
  EXPECT_FALSE(store_->HasFilesUntil(absl::Now() - absl::Hours(1)));
  ASSERT_TRUE(store_->Collect({}, absl::Now() - absl::Hours(1)).ok());
  EXPECT_EQ(Specs().size(), 2U);
  ASSERT_TRUE(store_->Collect({{kResource, {"m0-s0"}}}, absl::InfiniteFuture()).ok());
  EXPECT_THAT(Specs(), ElementsAre(used));
  EXPECT_EQ(Records().size(), 1U);
  EXPECT_TRUE(absl::IsNotFound(Prepare(shared_, {"m1-s0"}, {})));
  EXPECT_TRUE(Prepare(shared_, {"m0-s0"}, {}).ok());
  ASSERT_TRUE(store_->Collect({}, absl::InfiniteFuture()).ok());
  EXPECT_THAT(Specs(), IsEmpty());
  EXPECT_THAT(Records(), IsEmpty());
}

TEST_F(AllocationStoreTest, GarbageIsNoTroubleAndWhatIsNotOursStays) {
  const std::string spec = Add(shared_, {"m0-s0"});
  const std::string record = Records().at(0);
  const std::vector<std::string> foreign = {
      cdi_ + "/nvidia.com-gpu.yaml",
      cdi_ + "/railhead.io-hca_by-hand.json",
      cdi_ + "/railhead.io-hca_hca-0000000000000001-00000000000000zz.json",
      cdi_ + "/railhead.io-hca_hca-1.json",
      base_ + "/railhead/notes.json",
  };
  for (const std::string& path : foreign) std::ofstream(path) << "{";
  const std::string ours = "hca-0000000000000001-00000000000000ff";
  const std::vector<std::string> broken = {
      cdi_ + "/railhead.io-hca_" + ours + ".json",
      cdi_ + "/railhead.io-hca_" + ours + ".json.unfinished",
      base_ + "/railhead/allocation-" + ours + ".json",
      base_ + "/railhead/allocation-other.json",  // another name inside
      base_ + "/railhead/allocation-x.json.unfinished",
  };
  for (const std::string& path : broken) std::ofstream(path) << "{\"devices\": 1";
  fs::copy_file(record, broken[3], fs::copy_options::overwrite_existing);
  fs::create_directory(base_ + "/railhead/allocation-folder.json");
  fs::create_symlink("/etc/passwd", base_ + "/railhead/allocation-link.json");

  Restart();
  EXPECT_TRUE(Prepare(shared_, {"m0-s0"}, {}).ok());
  ASSERT_TRUE(store_->Collect({{kResource, {"m0-s0"}}}, absl::InfiniteFuture()).ok());
  for (const std::string& path : foreign) EXPECT_TRUE(fs::exists(path)) << path;
  for (const std::string& path : broken) EXPECT_FALSE(fs::exists(path)) << path;
  EXPECT_FALSE(fs::exists(base_ + "/railhead/allocation-folder.json"));
  EXPECT_FALSE(fs::is_symlink(base_ + "/railhead/allocation-link.json"));
  EXPECT_TRUE(fs::exists(spec));
  EXPECT_EQ(Records(), std::vector<std::string>{record});
}

TEST_F(AllocationStoreTest, WithoutCdiItOnlyTidiesUp) {
  Add(shared_, {"m0-s0"});
  cdi_ = "";
  Restart();
  EXPECT_FALSE(store_->enabled());
  ASSERT_TRUE(store_->Collect({}, absl::InfiniteFuture()).ok());
  EXPECT_THAT(Records(), IsEmpty());
}

TEST_F(AllocationStoreTest, RefusesAFolderThatIsNotThere) {
  const auto store =
      AllocationStore::Make({base_ + "/railhead", base_ + "/none", "node-1"}, files_.get());
  EXPECT_THAT(std::string(store.status().message()), HasSubstr("--cdi-dir " + base_ + "/none"));
}

}  // namespace
}  // namespace railhead::device_plugin
