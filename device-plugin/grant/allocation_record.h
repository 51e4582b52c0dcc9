// SPDX-License-Identifier: Apache-2.0
//
// Record of an allocation, kept for as long as its container may start again, also after a restart
// of the agent or the node. Pure. Stored by AllocationStore.
#ifndef RAILHEAD_DEVICE_PLUGIN_GRANT_ALLOCATION_RECORD_H_
#define RAILHEAD_DEVICE_PLUGIN_GRANT_ALLOCATION_RECORD_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "device-plugin/devices/container_devices.h"
#include "device-plugin/grant/late_binding.h"

namespace railhead::device_plugin {

struct AllocationRecord {
  std::string name;  // of its CDI device; unique for ever
  int64_t made = 0;  // nanoseconds since 1970; greater than in all earlier records
  std::string resource;
  std::vector<std::string> ids;  // allocated by kubelet; sorted
  Binding binding;               // of all HCAs of the ids; each to itself by default
  bool settled = false;          // bound with the container's GPUs known
  // Other HCAs (whole ids) of the container, of other resources.
  std::set<std::string> others = {};

  bool operator==(const AllocationRecord&) const = default;
};

// Returns a new record, bound to the HCAs that kubelet allocated, or to `all` (whole ids) for a
// device that stands for all HCAs of the resource.
AllocationRecord NewRecord(std::string name, int64_t made, std::string resource,
                           std::vector<std::string> ids, const std::set<std::string>& all = {});

// Deterministic: equal values give equal bytes.
std::string ToJson(const AllocationRecord& record);

// Parses untrusted text. The error names the field that is wrong.
absl::StatusOr<AllocationRecord> ParseAllocationRecord(absl::string_view json);

// Kubelet gives freed ids to another container, so several records may have the same id: the latest
// applies. A pod's init container and the next one may both hold an id while alive, but both are
// allocated at the pod's admission.

// In order of creation.
using AllocationRecords = std::vector<AllocationRecord>;

// Returns kubelet's list with the ids of the slots that containers really have: the slot of the
// same number, of the HCA that each is bound to.
std::vector<ContainerDevices> AsBound(const AllocationRecords& records,
                                      std::vector<ContainerDevices> listed);

// Returns the listed ids of a resource that are bound to another HCA, with that HCA.
std::map<std::string, std::string> BoundElsewhere(const AllocationRecords& records,
                                                  const std::vector<ContainerDevices>& listed,
                                                  const std::string& resource);

// Returns true if no container can need the record at `place`: none of its ids is held, or one of
// them was allocated again, later than its own admission can have lasted.
bool IsGone(const AllocationRecords& records, size_t place,
            const std::map<std::string, std::set<std::string>>& held);

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_GRANT_ALLOCATION_RECORD_H_
