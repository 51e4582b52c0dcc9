// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/agent.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "device-plugin/device_list.h"
#include "device-plugin/health.h"
#include "device-plugin/plugin_server.h"
#include "device-plugin/plugin_service.h"
#include "device-plugin/pod_resources.h"
#include "device-plugin/register_call.h"
#include "device-plugin/registration.h"
#include "device-plugin/resource_name.h"
#include "device-plugin/wake_up.h"
#include "fabric/inventory.h"
#include "fabric/sysfs_reader.h"

namespace railhead::device_plugin {
namespace {

constexpr std::chrono::seconds kPodResourcesDeadline(3);

std::string Text(const absl::Status& status) { return std::string(status.message()); }

std::string SocketName(const std::string& resource) {
  return absl::StrCat("railhead-", absl::StrReplaceAll(resource, {{"/", "-"}}));
}

// How long to sleep: never short of the moment, so that the loop does not spin.
std::chrono::milliseconds Until(TimePoint moment, TimePoint now) {
  return std::chrono::ceil<std::chrono::milliseconds>(std::max(moment - now, Duration::zero()));
}

void TellDevices(const DeviceSnapshot& before, const DeviceSnapshot& after) {
  for (const Device& device : after.devices) {
    const Device* old = before.Find(device.id);
    if (old != nullptr && old->hca.usable == device.hca.usable &&
        old->hca.reason == device.hca.reason) {
      continue;
    }
    if (device.hca.usable) {
      spdlog::info("device {} (rail {}) is healthy", device.id, device.hca.rail);
    } else {
      spdlog::warn("device {} (rail {}) is unhealthy: {}", device.id, device.hca.rail,
                   device.hca.reason);
    }
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<Agent>> Agent::Make(const AgentOptions& options) {
  if (absl::Status status = CheckResourceName(options.resource); !status.ok()) return status;
  if (options.node_name.empty()) {
    return absl::InvalidArgumentError(
        "the node's name is not known; give --node-name, or set NODE_NAME from spec.nodeName");
  }
  absl::StatusOr<std::unique_ptr<WakeUp>> wake_up = WakeUp::Make(options.kubelet_dir);
  if (!wake_up.ok()) return wake_up.status();
  if (!(*wake_up)->watches_folder()) {
    spdlog::warn(
        "cannot watch {} (too many inotify watches on the node?); looking at it every "
        "few seconds instead",
        options.kubelet_dir);
  }
  return std::unique_ptr<Agent>(new Agent(options, *std::move(wake_up)));
}

Agent::Agent(AgentOptions options, std::unique_ptr<WakeUp> wake_up)
    : options_(std::move(options)),
      kubelet_socket_(absl::StrCat(options_.kubelet_dir, "/kubelet.sock")),
      socket_name_(SocketName(options_.resource)),
      wake_up_(std::move(wake_up)),
      metrics_(
          options_.root, options_.node_name, board_,
          [this] {
            return AskDeviceHolders(options_.pod_resources_socket, options_.resource,
                                    kPodResourcesDeadline);
          },
          std::chrono::steady_clock::now),
      files_(absl::StrCat(options_.kubelet_dir, "/railhead")),
      service_(options_.node_name, board_, files_, [this] { wake_up_->Wake(); }),
      registration_(options_.timing) {}

Agent::~Agent() = default;

void Agent::Run(int stop_fd) {
  TimePoint rescan_at = std::chrono::steady_clock::now();
  TimePoint collect_at = rescan_at;
  bool stop = false;
  while (!stop) {
    const TimePoint now = std::chrono::steady_clock::now();
    if (now >= rescan_at) {
      Rescan();
      rescan_at = now + options_.rescan;
    }
    if (now >= collect_at) {
      Collect();
      collect_at = now + options_.collect;
    }
    TakeRegisterResult(now);
    const Observation seen = Observe();
    const Decision decision = registration_.Decide(seen, now);
    TellChanges(seen);
    metrics_.SetRegistered(registration_.serving());
    health_.Report({seen.has_devices, seen.kubelet.has_value(), registration_.serving()}, now);
    TimePoint wake_at = now;
    switch (decision.action) {
      case Action::kWait:
        wake_at = std::min({decision.wake_at, rescan_at, collect_at});
        break;
      case Action::kServe:
        Serve(now);
        break;
      case Action::kEndStreams:
        service_.EndStreams();
        break;
      case Action::kRegister:
        StartRegistration();
        break;
    }
    stop = wake_up_->Sleep(stop_fd, Until(wake_at, now));
  }
  Stop();
}

void Agent::Rescan() {
  const TimePoint begin = std::chrono::steady_clock::now();
  absl::StatusOr<fabric::NodeInventory> inventory = fabric::ReadInventory(options_.root);
  metrics_.ScanTook(std::chrono::steady_clock::now() - begin);
  if (!inventory.ok()) {
    // What was found before stays offered: not being able to look is no sign of a broken device.
    if (Text(inventory.status()) != last_scan_error_) {
      last_scan_error_ = Text(inventory.status());
      spdlog::error("cannot read the node's devices: {}", last_scan_error_);
    }
    return;
  }
  last_scan_error_.clear();
  const std::shared_ptr<const DeviceSnapshot> before = board_.Current();
  if (!board_.Publish(*std::move(inventory))) return;
  const std::shared_ptr<const DeviceSnapshot> after = board_.Current();
  if (after->devices.empty()) spdlog::info("this node has no RDMA device; looking again later");
  TellDevices(*before, *after);
  service_.BoardChanged();
}

void Agent::Collect() {
  const absl::Time limit = absl::Now() - options_.keep_files;
  if (!files_.HasFilesUntil(limit)) return;
  const absl::StatusOr<std::set<std::string>> in_use =
      DevicesInUse(options_.pod_resources_socket, options_.resource, kPodResourcesDeadline);
  const absl::Status status = in_use.ok() ? files_.Collect(*in_use, limit) : in_use.status();
  if (!status.ok()) spdlog::warn("unused rails files stay for now: {}", Text(status));
}

Observation Agent::Observe() const {
  const PluginService::Streams streams = service_.streams();
  Observation seen;
  seen.has_devices = !board_.Current()->devices.empty();
  seen.kubelet = IdentifySocket(kubelet_socket_);
  seen.own_socket = server_ != nullptr && server_->InPlace();
  seen.open_streams = streams.open;
  seen.streams_opened = streams.opened;
  return seen;
}

void Agent::TakeRegisterResult(TimePoint now) {
  if (register_call_ == nullptr) return;
  const std::optional<absl::Status> result = register_call_->result();
  if (!result.has_value()) return;
  register_call_.reset();
  if (result->ok()) {
    metrics_.CountRegistration();
  } else {
    spdlog::warn("{}", Text(*result));
  }
  registration_.RegisterFinished(result->ok(), now);
}

void Agent::Serve(TimePoint now) {
  server_.reset();
  absl::StatusOr<std::unique_ptr<PluginServer>> server =
      PluginServer::Start(service_, options_.kubelet_dir, socket_name_);
  if (!server.ok()) {
    spdlog::error("{}", Text(server.status()));
    registration_.ServeFailed(now);
    return;
  }
  server_ = *std::move(server);
}

void Agent::StartRegistration() {
  register_call_.reset();
  register_call_ = std::make_unique<RegisterCall>(kubelet_socket_, server_->endpoint(),
                                                  options_.resource, [this] { wake_up_->Wake(); });
}

void Agent::TellChanges(const Observation& seen) {
  if (registration_.serving() == told_serving_) return;
  told_serving_ = registration_.serving();
  if (told_serving_) {
    spdlog::info("kubelet takes {} from this node: {} devices", options_.resource,
                 board_.Current()->devices.size());
  } else {
    spdlog::warn("kubelet has lost {}: {}; registering again", options_.resource,
                 !seen.kubelet.has_value() ? "it has stopped"
                 : !seen.own_socket        ? "our socket was deleted"
                 : seen.open_streams == 0  ? "it closed the stream"
                                           : "it has started anew");
  }
}

void Agent::Stop() {
  register_call_.reset();
  server_.reset();  // from here on no pod can get our devices
  if (const std::optional<absl::Time> last = service_.last_allocation(); last.has_value()) {
    const absl::Duration rest = *last + options_.settle_at_stop - absl::Now();
    const absl::Duration pause = std::clamp(rest, absl::ZeroDuration(), options_.settle_at_stop);
    std::this_thread::sleep_for(absl::ToChronoMilliseconds(pause));
  }
  absl::StatusOr<std::set<std::string>> in_use = std::set<std::string>();
  if (files_.HasFilesUntil(absl::InfiniteFuture())) {
    in_use = DevicesInUse(options_.pod_resources_socket, options_.resource, kPodResourcesDeadline);
  }
  const absl::Status status =
      in_use.ok() ? files_.Collect(*in_use, absl::InfiniteFuture()) : in_use.status();
  if (!status.ok()) spdlog::warn("rails files stay: {}", Text(status));
  spdlog::info("stopped");
}

}  // namespace railhead::device_plugin
