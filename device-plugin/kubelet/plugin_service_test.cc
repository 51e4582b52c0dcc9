// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/kubelet/plugin_service.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "device-plugin/devices/device_list.h"
#include "device-plugin/proto/deviceplugin.pb.h"
#include "fabric/inventory.h"

namespace railhead::device_plugin {
namespace {

// A request of several containers for slots of eight HCAs.
class AddPreferencesTest : public ::testing::Test {
 protected:
  AddPreferencesTest() {
    for (int rail = 0; rail < 8; ++rail) {
      fabric::Hca hca;
      hca.name = absl::StrCat("mlx5_", rail);
      hca.rail = rail;
      for (int slot = 0; slot < 64; ++slot) {
        snapshot_.devices.push_back({DeviceId(hca, slot), hca});
      }
    }
    for (int i = 0; i < 3; ++i) {
      v1beta1::ContainerPreferredAllocationRequest* container = request_.add_container_requests();
      container->set_allocation_size(100);
      for (const Device& device : snapshot_.devices) container->add_available_deviceids(device.id);
    }
  }

  DeviceSnapshot snapshot_;
  v1beta1::PreferredAllocationRequest request_;
  v1beta1::PreferredAllocationResponse response_;
};

TEST_F(AddPreferencesTest, AnswersForEachContainer) {
  EXPECT_TRUE(AddPreferences(
                  snapshot_, request_, {}, [] { return false; }, response_)
                  .ok());
  ASSERT_EQ(response_.container_responses_size(), 3);
  for (const auto& container : response_.container_responses()) {
    EXPECT_EQ(container.deviceids_size(), 100);
  }
}

TEST_F(AddPreferencesTest, EndsWhenKubeletNoLongerWaits) {
  int looks = 0;
  const grpc::Status status = AddPreferences(
      snapshot_, request_, {}, [&looks] { return ++looks > 2; }, response_);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_EQ(response_.container_responses_size(), 1) << "the second container is not looked at";
  EXPECT_EQ(looks, 4);
}

}  // namespace
}  // namespace railhead::device_plugin
