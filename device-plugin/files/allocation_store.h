// SPDX-License-Identifier: Apache-2.0
//
// Allocations of containers that get their HCAs by CDI: for each a record, which survives restarts
// of the agent and the node, and a CDI spec with its current meaning. Used by PluginService and
// Agent.
//
// Records are stored next to the rails files; specs in the container runtimes' directory, which a
// reboot empties.
#ifndef RAILHEAD_DEVICE_PLUGIN_FILES_ALLOCATION_STORE_H_
#define RAILHEAD_DEVICE_PLUGIN_FILES_ALLOCATION_STORE_H_

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "device-plugin/devices/container_devices.h"
#include "device-plugin/devices/device_list.h"
#include "device-plugin/files/rails_files.h"
#include "device-plugin/grant/allocation.h"
#include "device-plugin/grant/allocation_record.h"
#include "device-plugin/offer/renumbering.h"

namespace railhead::device_plugin {

// Kubelet's state when a container is about to start.
struct KubeletView {
  std::optional<std::vector<ContainerDevices>> listed;  // nullopt if kubelet does not answer
  std::map<std::string, std::string> gpu_uuids;         // see GpuAddress
  absl::Time asked_at = absl::InfinitePast();           // before the list; monotonic
};

// Thread-safe.
class AllocationStore {
 public:
  struct Options {
    std::string folder;   // of the records; created with the first
    std::string cdi_dir;  // of the specs; "": no new allocations, only existing ones
    std::string node;     // node name in Kubernetes
  };

  // Loads existing records. Fails if `cdi_dir` does not exist. `files` must outlive the store.
  static absl::StatusOr<std::unique_ptr<AllocationStore>> Make(Options options, RailsFiles* files);

  bool enabled() const { return !options_.cdi_dir.empty(); }

  // For Allocate: records the meaning of these ids. Returns the CDI device's full name.
  absl::StatusOr<std::string> Add(const DeviceSnapshot& snapshot, const std::string& resource,
                                  const std::vector<std::string>& ids);

  // For PreStartContainer: binds the container (late_binding.h) and writes its spec from the
  // current devices. A container with several of the agent's resources has one spec for each; all
  // of them list all its HCAs. NotFound for ids that were never allocated.
  absl::Status Prepare(const DeviceSnapshot& snapshot, const std::string& resource,
                       const std::vector<std::string>& ids, const KubeletView& kubelet);

  // Returns all records.
  AllocationRecords records() const;

  // Returns what containers were given at their last start, by their specs, without rails: none for
  // a container that has not started since the node's boot.
  std::vector<Grant> Grants() const;

  // Updates the store with kubelet's list, unless it has one of a later request. `asked_at`: see
  // KubeletView.
  void Look(const std::vector<ContainerDevices>& listed, absl::Time asked_at);

  // See allocation_record.h; based on kubelet's last list, or on all records before the first.
  std::vector<ContainerDevices> AsBound(std::vector<ContainerDevices> listed) const;
  std::map<std::string, std::string> BoundElsewhere(const std::string& resource) const;

  // As in RailsFiles. `held`: resource to the ids that containers hold.
  bool HasFilesUntil(absl::Time limit) const;
  absl::Status Collect(const std::map<std::string, std::set<std::string>>& held, absl::Time limit);

 private:
  AllocationStore(Options options, RailsFiles* files)
      : options_(std::move(options)), files_(*files) {}

  void Load();
  std::string RecordPath(const std::string& name) const;
  std::string SpecPath(const std::string& name) const;
  // Stores kubelet's list, unless listed_ is from a later request.
  void TakeList(const std::vector<ContainerDevices>& listed, absl::Time asked_at);
  // Complete or not; specs first, so that no spec is left without a record.
  std::vector<std::string> OurFiles() const;
  // Returns the records with exactly these ids, in order of creation.
  std::vector<AllocationRecord*> RecordsOf(const std::string& resource,
                                           const std::set<std::string>& ids);
  // Returns the binding of the record's container if it starts now. `holder`: the container, if
  // known.
  Binding BindingOf(const AllocationRecord& record, const DeviceSnapshot& snapshot,
                    const KubeletView& kubelet, const ContainerDevices* holder) const;
  // Returns the records of the container's resources other than `resource`.
  std::vector<AllocationRecord*> BesidesOf(const ContainerDevices& holder,
                                           const std::string& resource);
  // Returns false if the spec existed in this form.
  absl::StatusOr<bool> Write(const AllocationRecord& record, const Allocation& allocation);

  const Options options_;
  RailsFiles& files_;
  mutable std::mutex mutex_;
  AllocationRecords records_;
  std::optional<std::vector<ContainerDevices>> listed_;
  absl::Time listed_asked_at_ = absl::InfinitePast();
};

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_FILES_ALLOCATION_STORE_H_
