// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/config/resource_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace railhead::device_plugin {
namespace {

TEST(ResourceName, WhatKubeletTakes) {
  for (const std::string name : {"rdma/hca", "example.com/mlx5_0", "a-b.c/D.e-f"}) {
    EXPECT_TRUE(CheckResourceName(name).ok()) << name;
  }
}

TEST(ResourceName, WhatKubeletRefuses) {
  const std::string long_name = "rdma/" + std::string(64, 'a');
  for (const std::string& name :
       {std::string(), std::string("hca"), std::string("/hca"), std::string("rdma/"),
        std::string("rdma/hca/x"), std::string("kubernetes.io/hca"),
        std::string("node.kubernetes.io/hca"), std::string("requests.rdma/hca"),
        std::string("RDMA/hca"), std::string("rdma/-hca"), std::string("rd_ma/hca"),
        std::string("rdma./hca"), std::string("rdma/h ca"), std::string("../hca"), long_name,
        std::string(250, 'a') + "/hca"}) {
    EXPECT_THAT(std::string(CheckResourceName(name).message()), ::testing::HasSubstr("--resource"))
        << name;
  }
}

}  // namespace
}  // namespace railhead::device_plugin
