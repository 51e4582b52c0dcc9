// SPDX-License-Identifier: Apache-2.0
//
// What a container runtime says to its plugin, for tests.
#ifndef RAILHEAD_DEVICE_PLUGIN_NRI_TESTING_CALLS_H_
#define RAILHEAD_DEVICE_PLUGIN_NRI_TESTING_CALLS_H_

#include <cstdint>
#include <string>

#include "device-plugin/nri/frames.h"
#include "device-plugin/proto/nri.pb.h"
#include "device-plugin/proto/ttrpc.pb.h"
#include "gtest/gtest.h"

namespace railhead::device_plugin::nri::testing {

inline std::string CallOfPlugin(uint32_t stream, const std::string& method,
                                const std::string& payload) {
  ttrpc::Request request;
  request.set_service("nri.pkg.api.v1alpha1.Plugin");
  request.set_method(method);
  request.set_payload(payload);
  return Encode({kPluginService, stream, MessageType::kRequest, request.SerializeAsString()});
}

// The one answer in `bytes`, which must be to the call of that stream.
inline ttrpc::Response ResponseIn(const std::string& bytes, uint32_t stream) {
  ttrpc::Response response;
  int messages = 0;
  MessageReader reader;
  const absl::Status read = reader.Take(bytes, [&](const Message& message) {
    ++messages;
    EXPECT_EQ(message.connection, kPluginService);
    EXPECT_EQ(message.stream, stream);
    EXPECT_EQ(message.type, MessageType::kResponse);
    EXPECT_TRUE(response.ParseFromString(message.payload));
    return absl::OkStatus();
  });
  EXPECT_TRUE(read.ok()) << read;
  EXPECT_EQ(messages, 1);
  return response;
}

// Container "train" of pod job-0 in namespace team, with one RDMA device.
inline ::nri::pkg::api::v1alpha1::CreateContainerRequest RdmaContainer() {
  ::nri::pkg::api::v1alpha1::CreateContainerRequest request;
  request.mutable_pod()->set_name("job-0");
  request.mutable_pod()->set_namespace_("team");
  request.mutable_container()->set_name("train");
  request.mutable_container()->mutable_linux()->add_devices()->set_path("/dev/infiniband/uverbs0");
  return request;
}

}  // namespace railhead::device_plugin::nri::testing

#endif  // RAILHEAD_DEVICE_PLUGIN_NRI_TESTING_CALLS_H_
