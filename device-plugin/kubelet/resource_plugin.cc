// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/kubelet/resource_plugin.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "device-plugin/devices/content_hash.h"
#include "device-plugin/devices/device_list.h"
#include "device-plugin/kubelet/plugin_server.h"
#include "device-plugin/kubelet/plugin_service.h"
#include "device-plugin/kubelet/register_call.h"
#include "device-plugin/kubelet/registration.h"

namespace railhead::device_plugin {
namespace {

std::string Text(const absl::Status& status) { return std::string(status.message()); }

// The path in kubelet's directory must fit into the 107 bytes of a Unix socket path for every
// resource name.
std::string SocketName(const std::string& resource) {
  constexpr size_t kMaxName = 36;
  constexpr size_t kNameHash = 8;
  std::string name = absl::StrReplaceAll(resource, {{"/", "-"}});
  if (name.size() > kMaxName) {
    name = absl::StrCat(name.substr(0, kMaxName - kNameHash - 1), "-",
                        ContentHash(resource).substr(0, kNameHash));
  }
  return name;
}

void TellDevices(const std::string& resource, const DeviceSnapshot& before,
                 const DeviceSnapshot& after) {
  for (const Device& device : after.devices) {
    const Device* old = before.Find(device.id);
    if (old != nullptr && old->hca.health == device.hca.health) continue;
    if (device.hca.health.usable()) {
      spdlog::info("{}: device {} (rail {}) is healthy", resource, device.id, device.hca.rail);
    } else {
      spdlog::warn("{}: device {} (rail {}) is unhealthy: {}", resource, device.id, device.hca.rail,
                   device.hca.health.Text());
    }
  }
}

}  // namespace

ResourcePlugin::ResourcePlugin(std::string resource, std::string kubelet_dir,
                               const ServiceOptions& service, const Registration::Timing& timing,
                               std::function<void()> wake)
    : resource_(std::move(resource)),
      kubelet_dir_(std::move(kubelet_dir)),
      kubelet_socket_(absl::StrCat(kubelet_dir_, "/kubelet.sock")),
      wake_(std::move(wake)),
      service_(service, board_, wake_),
      registration_(timing) {}

ResourcePlugin::~ResourcePlugin() { Stop(); }

void ResourcePlugin::Publish(const fabric::NodeInventory& inventory, std::vector<Device> devices,
                             std::map<std::string, std::string> bound) {
  const std::shared_ptr<const DeviceSnapshot> before = board_.Current();
  if (!board_.Publish(inventory, std::move(devices), std::move(bound))) return;
  TellDevices(resource_, *before, *board_.Current());
  service_.BoardChanged();
}

TimePoint ResourcePlugin::Step(TimePoint now) {
  TakeRegisterResult(now);
  const Observation seen = Observe();
  const Decision decision = registration_.Decide(seen, now);
  TellChanges(seen);
  switch (decision.action) {
    case Action::kWait:
      return decision.wake_at;
    case Action::kServe:
      Serve(now);
      break;
    case Action::kEndStreams:
      service_.EndStreams();
      break;
    case Action::kRegister:
      register_call_.reset();
      register_call_ =
          std::make_unique<RegisterCall>(kubelet_socket_, server_->endpoint(), resource_, wake_);
      break;
  }
  return now;
}

Observation ResourcePlugin::Observe() const {
  const PluginService::Streams streams = service_.streams();
  Observation seen;
  seen.has_devices = has_devices();
  seen.kubelet = IdentifySocket(kubelet_socket_);
  seen.own_socket = server_ != nullptr && server_->InPlace();
  seen.open_streams = streams.open;
  seen.streams_opened = streams.opened;
  return seen;
}

void ResourcePlugin::TakeRegisterResult(TimePoint now) {
  if (register_call_ == nullptr) return;
  const std::optional<absl::Status> result = register_call_->result();
  if (!result.has_value()) return;
  register_call_.reset();
  if (result->ok()) {
    ++registrations_;
  } else {
    spdlog::warn("{}", Text(*result));
  }
  registration_.RegisterFinished(result->ok(), now);
}

void ResourcePlugin::Serve(TimePoint now) {
  server_.reset();
  absl::StatusOr<std::unique_ptr<PluginServer>> server =
      PluginServer::Start(service_, kubelet_dir_, SocketName(resource_));
  if (!server.ok()) {
    spdlog::error("{}", Text(server.status()));
    registration_.ServeFailed(now);
    return;
  }
  server_ = *std::move(server);
}

void ResourcePlugin::TellChanges(const Observation& seen) {
  if (registration_.serving() == told_serving_) return;
  told_serving_ = registration_.serving();
  if (told_serving_) {
    spdlog::info("registered {} with kubelet: {} devices", resource_,
                 board_.Current()->devices.size());
  } else {
    spdlog::warn("lost the registration of {}: {}; registering again", resource_,
                 !seen.kubelet.has_value() ? "kubelet stopped"
                 : !seen.own_socket        ? "the plugin's socket was deleted"
                 : seen.open_streams == 0  ? "kubelet closed the stream"
                                           : "kubelet restarted");
  }
}

void ResourcePlugin::Stop() {
  register_call_.reset();
  server_.reset();
}

}  // namespace railhead::device_plugin
