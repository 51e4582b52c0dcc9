// SPDX-License-Identifier: Apache-2.0
//
// Kubelet's view of one resource ("rdma/hca"): its devices, its socket, and its registration, kept
// up through restarts of kubelet.
#ifndef RAILHEAD_DEVICE_PLUGIN_KUBELET_RESOURCE_PLUGIN_H_
#define RAILHEAD_DEVICE_PLUGIN_KUBELET_RESOURCE_PLUGIN_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "device-plugin/devices/device_list.h"
#include "device-plugin/devices/time_point.h"
#include "device-plugin/kubelet/plugin_server.h"
#include "device-plugin/kubelet/plugin_service.h"
#include "device-plugin/kubelet/register_call.h"
#include "device-plugin/kubelet/registration.h"

namespace railhead::device_plugin {

// Not thread-safe, except where stated. Owned by the agent's loop.
class ResourcePlugin {
 public:
  // `wake` is called on any thread when Step is due.
  ResourcePlugin(std::string resource, std::string kubelet_dir, const ServiceOptions& service,
                 const Registration::Timing& timing, std::function<void()> wake);
  ~ResourcePlugin();
  ResourcePlugin(const ResourcePlugin&) = delete;
  ResourcePlugin& operator=(const ResourcePlugin&) = delete;

  const std::string& resource() const { return resource_; }

  // Offers these devices; kubelet gets a change at once. `bound`: see DeviceSnapshot.
  void Publish(const fabric::NodeInventory& inventory, std::vector<Device> devices,
               std::map<std::string, std::string> bound = {});

  // Observes kubelet and performs the next action, if any. Returns the time of the next call, at
  // the latest: `now` if it did something.
  TimePoint Step(TimePoint now);

  bool has_devices() const { return !board_.Current()->devices.empty(); }
  // Kubelet has an open stream.
  bool serving() const { return registration_.serving(); }
  // Number of successful registrations.
  uint64_t registrations() const { return registrations_; }
  std::optional<absl::Time> last_allocation() const { return service_.last_allocation(); }
  std::set<std::string> AllocatedSince(absl::Time since) const {
    return service_.AllocatedSince(since);
  }
  // Thread-safe.
  std::shared_ptr<const DeviceSnapshot> devices() const { return board_.Current(); }

  // Ends the service: kubelet can allocate no device from here on.
  void Stop();

 private:
  Observation Observe() const;
  void TakeRegisterResult(TimePoint now);
  void Serve(TimePoint now);
  void TellChanges(const Observation& seen);

  const std::string resource_;
  const std::string kubelet_dir_;
  const std::string kubelet_socket_;
  const std::function<void()> wake_;
  DeviceBoard board_;
  PluginService service_;
  Registration registration_;
  std::unique_ptr<PluginServer> server_;
  std::unique_ptr<RegisterCall> register_call_;
  uint64_t registrations_ = 0;
  bool told_serving_ = false;
};

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_KUBELET_RESOURCE_PLUGIN_H_
