// SPDX-License-Identifier: Apache-2.0
//
// Chooses among free devices for a container. Pure. Used by PluginService and late_binding.h.
//
// Criteria, most important first: each GPU of the container has an HCA as near as possible; no HCA
// is far from all of them; the HCAs are far from each other (first one per PCIe switch, then on
// both NUMA nodes, so that they share as little as possible); shared HCAs have the most free slots;
// the lowest rails, so that equal nodes give equal rails.
#ifndef RAILHEAD_DEVICE_PLUGIN_GRANT_PREFERENCE_H_
#define RAILHEAD_DEVICE_PLUGIN_GRANT_PREFERENCE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "device-plugin/devices/device_list.h"

namespace railhead::device_plugin {

struct Wish {
  std::vector<std::string> available;     // device ids, including must_include
  std::vector<std::string> must_include;  // device ids
  size_t size = 0;                        // number of devices needed
  std::vector<std::string> gpus;          // PCI addresses of the container's GPUs, if known
  // Device id to the number of other containers that share it, if `available` does not show that.
  std::map<std::string, int64_t> load = {};
};

// Bounds the work of one choice: while kubelet waits for the response, it admits no other pod.
// A step compares one HCA.
class StepLimit {
 public:
  // Far more steps than a choice on a real node needs; this many take a fraction of a second.
  static constexpr size_t kMost = 1'000'000;

  // `cancelled`: returns true if the caller has gone; may be null.
  explicit StepLimit(size_t most = kMost, std::function<bool()> cancelled = nullptr)
      : most_(most), cancelled_(std::move(cancelled)) {}

  // Takes one step. Returns false if there should be no more.
  bool Take();

  size_t taken() const { return taken_; }

 private:
  const size_t most_;
  const std::function<bool()> cancelled_;
  size_t taken_ = 0;
  bool stopped_ = false;  // it was cancelled
};

// Returns `size` device ids, must_include first; fewer if not enough are available. Uses ids that
// are not in the snapshot last. Chooses a number of slots of each HCA, then the first free slots of
// each. The choice is a local optimum: no exchange of one device improves it. Takes
// O(HCAs * (size + HCAs * exchanges)) steps; beyond the limit it returns the best choice found,
// with any devices added.
std::vector<std::string> Prefer(const DeviceSnapshot& snapshot, const Wish& wish);
std::vector<std::string> Prefer(const DeviceSnapshot& snapshot, const Wish& wish, StepLimit& limit);

// Returns true if the devices `held` are as near to the GPUs (PCI addresses) as any choice of the
// same number of the snapshot's devices, free or not; also if a GPU or device is unknown.
bool IsAligned(const DeviceSnapshot& snapshot, const std::vector<std::string>& held,
               const std::vector<std::string>& gpus);

// Returns the costs that Prefer minimizes, most important first; for tests.
std::vector<int64_t> CostOf(const DeviceSnapshot& snapshot, const Wish& wish,
                            const std::vector<std::string>& chosen);

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_GRANT_PREFERENCE_H_
