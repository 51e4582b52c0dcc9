// SPDX-License-Identifier: Apache-2.0
//
// What the agent must know of an allocation for as long as its container may start again: also
// after a restart of the agent, or of the node. Pure.
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
#include "device-plugin/grant/late_binding.h"
#include "device-plugin/offer/container_devices.h"

namespace railhead::device_plugin {

struct AllocationRecord {
  std::string name;  // of its CDI device; no other allocation ever has it
  int64_t made = 0;  // nanoseconds since 1970; greater than that of every earlier record
  std::string resource;
  std::vector<std::string> ids;  // that kubelet has allocated; sorted
  Binding binding;               // of all HCAs of the ids; to themselves where nothing else is said
  bool settled = false;          // bound with knowledge of the container's GPUs
  // HCAs (whole ids) that the container has beside these, of other resources.
  std::set<std::string> others = {};

  bool operator==(const AllocationRecord&) const = default;
};

// A new one, bound to what kubelet named; where that stands for all HCAs of the resource, to these
// (`all`, whole ids).
AllocationRecord NewRecord(std::string name, int64_t made, std::string resource,
                           std::vector<std::string> ids, const std::set<std::string>& all = {});

// The same value always gives the same bytes.
std::string ToJson(const AllocationRecord& record);

// Reads what ToJson has written, or anything else: refuses what is no record with all that is said
// above; the message names the field.
absl::StatusOr<AllocationRecord> ParseAllocationRecord(absl::string_view json);

// Kubelet hands ids that have become free to another container, so several records may name an id:
// the latest counts. The init container of a pod and the one after it may both have an id and be
// alive, but both are allocated at the pod's admission.

// In the order in which they were made.
using AllocationRecords = std::vector<AllocationRecord>;

// What kubelet lists, with the ids of those slots that containers really have: of the HCA that each
// is bound to, the slot of the same number.
std::vector<ContainerDevices> AsBound(const AllocationRecords& records,
                                      std::vector<ContainerDevices> listed);

// Ids of a resource that are listed and bound to another HCA than they name, to that HCA.
std::map<std::string, std::string> BoundElsewhere(const AllocationRecords& records,
                                                  const std::vector<ContainerDevices>& listed,
                                                  const std::string& resource);

// Whether no container can need the record at `place` any more: nobody holds any of its ids, or one
// of them was given away again, longer after it than an admission takes.
bool IsGone(const AllocationRecords& records, size_t place,
            const std::map<std::string, std::set<std::string>>& held);

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_GRANT_ALLOCATION_RECORD_H_
