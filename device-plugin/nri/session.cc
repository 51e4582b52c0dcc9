// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/nri/session.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "device-plugin/nri/memlock.h"
#include "device-plugin/proto/nri.pb.h"
#include "device-plugin/proto/ttrpc.pb.h"

namespace railhead::device_plugin::nri {
namespace {

namespace api = ::nri::pkg::api::v1alpha1;

constexpr char kPlugin[] = "nri.pkg.api.v1alpha1.Plugin";
constexpr char kRuntime[] = "nri.pkg.api.v1alpha1.Runtime";
// After plugins that choose devices, which have lower numbers.
constexpr char kIndex[] = "90";
constexpr uint32_t kOnlyCall = 1;  // the stream of the plugin's only call
constexpr int64_t kPatienceNanos = 5'000'000'000;

}  // namespace

std::string Session::Introduction() {
  api::RegisterPluginRequest registration;
  registration.set_plugin_name("railhead-memlock");
  registration.set_plugin_idx(kIndex);
  ttrpc::Request request;
  request.set_service(kRuntime);
  request.set_method("RegisterPlugin");
  request.set_payload(registration.SerializeAsString());
  request.set_timeout_nano(kPatienceNanos);
  return Encode({kRuntimeService, kOnlyCall, MessageType::kRequest, request.SerializeAsString()});
}

absl::StatusOr<std::string> Session::Take(absl::string_view bytes) {
  std::string answers;
  absl::Status taken =
      reader_.Take(bytes, [&](const Message& message) { return TakeMessage(message, answers); });
  if (!taken.ok()) return taken;
  return answers;
}

std::vector<std::string> Session::TakeRaised() { return std::exchange(raised_, {}); }

absl::Status Session::TakeMessage(const Message& message, std::string& answers) {
  ttrpc::Response response;
  if (message.connection == kRuntimeService) {
    if (message.type != MessageType::kResponse || message.stream != kOnlyCall ||
        !response.ParseFromString(message.payload)) {
      return absl::InvalidArgumentError("NRI: invalid response to the registration");
    }
    if (response.status().code() == 0) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat(
        "NRI: the container runtime rejected the plugin: ", response.status().message(), " (code ",
        response.status().code(), ")"));
  }
  ttrpc::Request request;
  if (message.type != MessageType::kRequest || !request.ParseFromString(message.payload) ||
      request.service() != kPlugin) {
    return absl::InvalidArgumentError("NRI: invalid plugin request");
  }
  absl::StatusOr<std::string> answer = Call(request.method(), request.payload());
  if (answer.ok()) {
    response.set_payload(*std::move(answer));
  } else {
    response.mutable_status()->set_code(static_cast<int>(answer.status().code()));
    response.mutable_status()->set_message(std::string(answer.status().message()));
  }
  answers += Encode(
      {kPluginService, message.stream, MessageType::kResponse, response.SerializeAsString()});
  return absl::OkStatus();
}

absl::StatusOr<std::string> Session::Call(const std::string& method, const std::string& payload) {
  if (method == "Configure") return Configure(payload);
  if (method == "CreateContainer") return CreateContainer(payload);
  if (method == "Synchronize") {
    api::SynchronizeRequest request;
    api::SynchronizeResponse response;
    response.set_more(request.ParseFromString(payload) && request.more());
    return response.SerializeAsString();
  }
  if (method == "Shutdown" || method == "StateChange") return std::string();  // Empty
  return absl::UnimplementedError(absl::StrCat("the plugin does not implement ", method));
}

std::string Session::Configure(const std::string& payload) {
  api::ConfigureRequest request;
  runtime_ = request.ParseFromString(payload)
                 ? absl::StrCat(request.runtime_name(), " ", request.runtime_version())
                 : "unknown";
  api::ConfigureResponse response;
  response.set_events(1 << (api::CREATE_CONTAINER - 1));
  return response.SerializeAsString();
}

std::string Session::CreateContainer(const std::string& payload) {
  api::CreateContainerRequest request;
  api::CreateContainerResponse response;
  if (!request.ParseFromString(payload)) return response.SerializeAsString();
  api::ContainerAdjustment adjustment = AdjustMemlock(request.pod(), request.container());
  if (adjustment.rlimits_size() > 0) {
    raised_.push_back(absl::StrCat(request.pod().namespace_(), "/", request.pod().name(), "/",
                                   request.container().name()));
    *response.mutable_adjust() = std::move(adjustment);
  }
  return response.SerializeAsString();
}

}  // namespace railhead::device_plugin::nri
