// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/nri/session.h"

#include <cstdint>
#include <limits>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "device-plugin/nri/frames.h"
#include "device-plugin/nri/testing/calls.h"
#include "device-plugin/proto/nri.pb.h"
#include "device-plugin/proto/ttrpc.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace railhead::device_plugin::nri {
namespace {

namespace api = ::nri::pkg::api::v1alpha1;

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uint64_t kUnlimited = std::numeric_limits<uint64_t>::max();

class SessionTest : public ::testing::Test {
 protected:
  // What the session answers to a call of the runtime.
  ttrpc::Response Answer(const std::string& method, const std::string& payload) {
    stream_ += 2;
    const absl::StatusOr<std::string> bytes =
        session_.Take(testing::CallOfPlugin(stream_, method, payload));
    EXPECT_TRUE(bytes.ok()) << bytes.status();
    return testing::ResponseIn(*bytes, stream_);
  }

  api::CreateContainerResponse Create(const api::CreateContainerRequest& request) {
    const ttrpc::Response answer = Answer("CreateContainer", request.SerializeAsString());
    EXPECT_FALSE(answer.has_status());
    api::CreateContainerResponse response;
    EXPECT_TRUE(response.ParseFromString(answer.payload()));
    return response;
  }

  Session session_;
  uint32_t stream_ = 1;
};

TEST_F(SessionTest, Registers) {
  std::vector<Message> messages;
  MessageReader reader;
  ASSERT_TRUE(reader
                  .Take(Session::Introduction(),
                        [&messages](const Message& message) {
                          messages.push_back(message);
                          return absl::OkStatus();
                        })
                  .ok());
  ASSERT_EQ(messages.size(), 1U);
  EXPECT_EQ(messages[0].connection, kRuntimeService);
  ttrpc::Request request;
  ASSERT_TRUE(request.ParseFromString(messages[0].payload));
  EXPECT_EQ(request.service(), "nri.pkg.api.v1alpha1.Runtime");
  EXPECT_EQ(request.method(), "RegisterPlugin");
  api::RegisterPluginRequest registration;
  ASSERT_TRUE(registration.ParseFromString(request.payload()));
  EXPECT_EQ(registration.plugin_name(), "railhead-memlock");
  EXPECT_THAT(registration.plugin_idx(), ::testing::MatchesRegex("[0-9][0-9]"));
}

TEST_F(SessionTest, AsksForNewContainersAlone) {
  EXPECT_EQ(session_.runtime(), "");
  api::ConfigureRequest request;
  request.set_runtime_name("containerd");
  request.set_runtime_version("v2.4.2");
  api::ConfigureResponse response;
  ASSERT_TRUE(response.ParseFromString(Answer("Configure", request.SerializeAsString()).payload()));
  EXPECT_EQ(response.events(), 0b1000);
  EXPECT_EQ(session_.runtime(), "containerd v2.4.2");
}

TEST_F(SessionTest, ReadsWhatIsThereInAsManyCallsAsTheRuntimeMakes) {
  for (const bool more : {true, false}) {
    api::SynchronizeRequest request;
    request.set_more(more);
    api::SynchronizeResponse response;
    ASSERT_TRUE(
        response.ParseFromString(Answer("Synchronize", request.SerializeAsString()).payload()));
    EXPECT_EQ(response.more(), more);
  }
}

TEST_F(SessionTest, WhoHoldsAnRdmaDeviceMayPinWithoutLimit) {
  const api::CreateContainerResponse response = Create(testing::RdmaContainer());
  ASSERT_EQ(response.adjust().rlimits_size(), 1);
  EXPECT_EQ(response.adjust().rlimits(0).type(), "RLIMIT_MEMLOCK");
  EXPECT_EQ(response.adjust().rlimits(0).hard(), kUnlimited);
  EXPECT_EQ(response.adjust().rlimits(0).soft(), kUnlimited);
  EXPECT_THAT(session_.TakeRaised(), ElementsAre("team/job-0/train"));
  EXPECT_THAT(session_.TakeRaised(), IsEmpty());
}

TEST_F(SessionTest, OthersStayAsTheyAre) {
  const auto unchanged = [this](auto&& change) {
    api::CreateContainerRequest request = testing::RdmaContainer();
    change(request);
    return !Create(request).has_adjust();
  };
  EXPECT_TRUE(unchanged([](auto& request) { request.mutable_container()->clear_linux(); }));
  EXPECT_TRUE(unchanged([](auto& request) {
    request.mutable_container()->mutable_linux()->mutable_devices(0)->set_path(
        "/dev/infiniband/rdma_cm");
  })) << "every container may be given the connection manager";
  EXPECT_TRUE(unchanged([](auto& request) {
    request.mutable_container()->mutable_linux()->mutable_devices(0)->set_path(
        "/data/dev/infiniband/uverbs0");
  }));
  EXPECT_TRUE(unchanged([](auto& request) {
    api::POSIXRlimit& limit = *request.mutable_container()->add_rlimits();
    limit.set_type("RLIMIT_MEMLOCK");
    limit.set_soft(kUnlimited);
    limit.set_hard(kUnlimited);
  })) << "has it already";
  EXPECT_TRUE(unchanged([](auto& request) {
    (*request.mutable_pod()->mutable_annotations())["ulimits.nri.containerd.io/container.train"] =
        "[]";
  })) << "another plugin sets it, and two that do prevent the start";
  EXPECT_FALSE(unchanged([](auto& request) {
    api::POSIXRlimit& limit = *request.mutable_container()->add_rlimits();
    limit.set_type("RLIMIT_NOFILE");
    limit.set_soft(kUnlimited);
    limit.set_hard(kUnlimited);
  })) << "another limit";
  EXPECT_THAT(session_.TakeRaised(), ElementsAre("team/job-0/train"));
}

// The runtime lets a container fail whose plugin answers with an error.
TEST_F(SessionTest, AContainerThatCannotBeReadIsCreatedAsItIs) {
  const ttrpc::Response answer = Answer("CreateContainer", "\xff\xff\xff");
  EXPECT_FALSE(answer.has_status());
  EXPECT_EQ(answer.payload(), "");
}

TEST_F(SessionTest, CallsThatWeDidNotAskForAreRefusedAndHarmNothing) {
  const ttrpc::Response answer = Answer("StopContainer", "");
  EXPECT_EQ(answer.status().code(), static_cast<int>(absl::StatusCode::kUnimplemented));
  EXPECT_THAT(answer.status().message(), HasSubstr("StopContainer"));
  EXPECT_FALSE(Answer("Shutdown", "").has_status());
  EXPECT_FALSE(Answer("StateChange", "").has_status());
  EXPECT_EQ(Create(testing::RdmaContainer()).adjust().rlimits_size(), 1);
}

TEST_F(SessionTest, ARuntimeThatRefusesUsSaysWhy) {
  ttrpc::Response refusal;
  refusal.mutable_status()->set_code(7);
  refusal.mutable_status()->set_message("plugins are off");
  const absl::StatusOr<std::string> end = session_.Take(
      Encode({kRuntimeService, 1, MessageType::kResponse, refusal.SerializeAsString()}));
  EXPECT_EQ(end.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(end.status().message()), HasSubstr("plugins are off (code 7)"));
}

TEST_F(SessionTest, SomethingElseThanARuntimeIsRefused) {
  const Message messages[] = {
      {kRuntimeService, 1, MessageType::kRequest, ""},   // a call where answers come
      {kRuntimeService, 3, MessageType::kResponse, ""},  // an answer to nothing
      {kRuntimeService, 1, MessageType::kResponse, "\xff"},
      {kPluginService, 1, MessageType::kResponse, ""},
      {kPluginService, 1, MessageType::kRequest, "\xff"},
      {kPluginService, 1, MessageType::kRequest, ""},  // of no service
  };
  for (const Message& message : messages) {
    Session session;
    EXPECT_EQ(session.Take(Encode(message)).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace railhead::device_plugin::nri
