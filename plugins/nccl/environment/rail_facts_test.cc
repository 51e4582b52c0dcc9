// SPDX-License-Identifier: Apache-2.0
#include "plugins/nccl/environment/rail_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "fabric/nccl_ib_hca.h"
#include "fabric/testing/sysfs_tree.h"

namespace railhead::nccl {
namespace {

using ::testing::HasSubstr;

constexpr char kFile[] = "/run/railhead/rails.json";

std::string PodGid(int rail) {
  return absl::StrCat("0000:0000:0000:0000:0000:ffff:0a01:000", rail);
}

class RailFactsTest : public ::testing::Test {
 protected:
  // Gives the pod a rail; one of RoCE has a table of entries of the node.
  void Add(int rail, const std::string& device, const std::string& link_layer,
           const std::string& state = "4: ACTIVE") {
    fabric::PodRail added;
    added.rail = rail;
    added.device = device;
    added.link_layer = link_layer;
    added.rate_gbps = 400;
    rails_.rails.push_back(added);
    const std::string folder = absl::StrCat("/sys/class/infiniband/", device);
    tree_.Write(folder + "/node_type", "1: CA\n");
    tree_.Write(folder + "/ports/1/link_layer", link_layer + "\n");
    tree_.Write(folder + "/ports/1/state", state + "\n");
    if (link_layer == "InfiniBand") return;
    AddGid(device, 0, "IB/RoCE v1", "0000:0000:0000:0000:0000:ffff:0a00:0001");
    AddGid(device, 1, "RoCE v2", "0000:0000:0000:0000:0000:ffff:0a00:0001");
  }

  void AddGid(const std::string& device, int index, const std::string& type,
              const std::string& gid) {
    const std::string port = absl::StrCat("/sys/class/infiniband/", device, "/ports/1");
    tree_.Write(absl::StrCat(port, "/gid_attrs/types/", index), type + "\n");
    tree_.Write(absl::StrCat(port, "/gids/", index), gid + "\n");
  }

  absl::StatusOr<RailFacts> Read(const config::Settings& settings = {}) {
    rails_.node = "n1";
    tree_.Write(kFile, fabric::ToJson(rails_));
    return ReadRailFacts(tree_.root(), settings, own_);
  }

  std::string Hca(const config::Settings& settings = {}) {
    const absl::StatusOr<RailFacts> facts = Read(settings);
    EXPECT_TRUE(facts.ok()) << facts.status();
    return facts.ok() ? fabric::NcclIbHca(facts->rails) : "";
  }

  fabric::testing::SysfsTree tree_;
  fabric::PodRails rails_;
  std::vector<net::IpAddress> own_ = {
      *net::IpAddress::Parse("127.0.0.1"), *net::IpAddress::Parse("10.1.0.0"),
      *net::IpAddress::Parse("10.1.0.1"), *net::IpAddress::Parse("10.1.0.2")};
};

TEST_F(RailFactsTest, RailsAreInOrder) {
  Add(1, "mlx5_0", "InfiniBand");
  Add(0, "mlx5_3", "InfiniBand");
  EXPECT_EQ(Hca(), "=mlx5_3:1:0,mlx5_0:1:1");
  EXPECT_EQ(Read()->gid_index, std::nullopt);
}

TEST_F(RailFactsTest, EightRailsAndTheSettingsChoice) {
  for (int rail = 0; rail < 8; ++rail) Add(rail, absl::StrCat("ib", rail), "InfiniBand");
  EXPECT_EQ(Read()->rails.size(), 8U);
  config::Settings settings;
  settings.rails = {2, 7, 9};
  EXPECT_EQ(Hca(settings), "=ib2:1:2,ib7:1:7");
}

TEST_F(RailFactsTest, ADeadRailIsListed) {
  Add(0, "roce0", "Ethernet");
  Add(1, "roce1", "Ethernet", "1: DOWN");
  EXPECT_EQ(Hca(), "=roce0:1:0,roce1:1:1") << "as by the node agent; NCCL skips it until it is up";
}

TEST_F(RailFactsTest, RoceWithAGidOfThePod) {
  for (const int rail : {0, 1, 2}) {
    const std::string device = absl::StrCat("roce", rail);
    Add(rail, device, "Ethernet");
    EXPECT_EQ(Read()->gid_index, std::nullopt) << "rail " << rail << " has none yet";
    AddGid(device, 2, "IB/RoCE v1", PodGid(rail));
    AddGid(device, 3, "RoCE v2", PodGid(rail));
    EXPECT_EQ(Read()->gid_index, 3);
  }
  config::Settings settings;
  settings.rails = {0};
  AddGid("roce1", 2, "RoCE v2", PodGid(1));
  EXPECT_EQ(Read()->gid_index, std::nullopt);
  EXPECT_EQ(Read(settings)->gid_index, 3) << "the rails that are used";
}

TEST_F(RailFactsTest, MixedLinkLayers) {
  Add(0, "mlx5_0", "InfiniBand");
  Add(1, "roce1", "Ethernet");
  EXPECT_EQ(Hca(), "=mlx5_0:1:0,roce1:1:1");
  AddGid("roce1", 2, "RoCE v2", PodGid(1));
  EXPECT_EQ(Read()->gid_index, 2);
}

TEST_F(RailFactsTest, APodWithoutRails) {
  EXPECT_TRUE(Read()->rails.empty());
  EXPECT_EQ(Read()->gid_index, std::nullopt);
}

TEST_F(RailFactsTest, ADeviceThatIsGone) {
  Add(0, "roce0", "Ethernet");
  tree_.Remove("/sys/class/infiniband");
  EXPECT_EQ(Hca(), "=roce0:1:0");
}

TEST_F(RailFactsTest, AMissingFileIsNotFoundAndAWrongOneNamed) {
  EXPECT_TRUE(absl::IsNotFound(ReadRailFacts(tree_.root(), {}, own_).status()));
  for (const char* wrong : {"", "{}", "[]", "{\"apiVersion\": 1}", "\xff\x00"}) {
    tree_.Write(kFile, wrong);
    const absl::Status status = ReadRailFacts(tree_.root(), {}, own_).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(kFile));
  }
  tree_.Remove(kFile);
  tree_.MakeFolder(kFile);
  EXPECT_FALSE(ReadRailFacts(tree_.root(), {}, own_).ok());
  config::Settings settings;
  settings.rails_file = "x/rails.json";
  tree_.Write("/x/rails.json", fabric::ToJson({"n1", {}}));
  EXPECT_TRUE(ReadRailFacts(tree_.root(), settings, own_).ok());
}

}  // namespace
}  // namespace railhead::nccl
