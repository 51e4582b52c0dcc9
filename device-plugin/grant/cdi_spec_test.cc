// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/grant/cdi_spec.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace railhead::device_plugin {
namespace {

TEST(CdiSpec, IsWhatARuntimeReads) {
  Allocation allocation;
  allocation.char_devices = {"/dev/infiniband/uverbs1", "/dev/infiniband/rdma_cm"};
  allocation.nccl_ib_hca = "=mlx5_1:1";
  const std::string spec = ToCdiSpec("hca-1", allocation, "/var/lib/rails-1.json");
  EXPECT_EQ(nlohmann::json::parse(spec), nlohmann::json::parse(R"({
    "cdiVersion": "0.3.0",
    "kind": "railhead.io/hca",
    "devices": [{
      "name": "hca-1",
      "containerEdits": {
        "env": ["NCCL_IB_HCA==mlx5_1:1"],
        "deviceNodes": [
          {"path": "/dev/infiniband/uverbs1", "permissions": "rw"},
          {"path": "/dev/infiniband/rdma_cm", "permissions": "rw"}
        ],
        "mounts": [{
          "hostPath": "/var/lib/rails-1.json",
          "containerPath": "/run/railhead/rails.json",
          "options": ["ro", "nosuid", "nodev", "noexec", "bind"]
        }]
      }
    }]
  })"));
  EXPECT_EQ(spec, ToCdiSpec("hca-1", allocation, "/var/lib/rails-1.json"));
}

// Field names of version 1.1.0 of the specification, the first that has them.
TEST(CdiSpec, InterfacesMoveWithTheirHcas) {
  Allocation allocation;
  allocation.interfaces = {{"ens1f0np0", "rail0"}, {"ens2f0np0", "rail1"}};
  const auto spec = nlohmann::json::parse(ToCdiSpec("hca-1", allocation, "/r.json"));
  EXPECT_EQ(spec["cdiVersion"], "1.1.0");
  EXPECT_EQ(spec["devices"][0]["containerEdits"]["netDevices"],
            nlohmann::json::parse(R"([{"hostInterfaceName": "ens1f0np0", "name": "rail0"},
                                      {"hostInterfaceName": "ens2f0np0", "name": "rail1"}])"));
}

TEST(CdiSpec, OddBytesAreNoCrash) {
  Allocation allocation;
  allocation.nccl_ib_hca = "=\xff\"\n";
  allocation.char_devices = {"\xc0\x80"};
  EXPECT_TRUE(nlohmann::json::accept(ToCdiSpec("a", allocation, "\xfe")));
}

TEST(CdiName, IsSafeForEveryVersion) {
  for (const char* good : {"a", "hca-00ff-1", "a_b.c-d", "Z9"})
    EXPECT_TRUE(IsCdiName(good)) << good;
  for (const char* bad : {"", "1a", "-a", "a-", "a.", "a/b", "a:b", "a b", "a\n", "\xc3\xa4"}) {
    EXPECT_FALSE(IsCdiName(bad)) << bad;
  }
  EXPECT_TRUE(IsCdiName(std::string(63, 'a')));
  EXPECT_FALSE(IsCdiName(std::string(64, 'a')));
}

}  // namespace
}  // namespace railhead::device_plugin
