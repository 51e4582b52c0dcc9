// SPDX-License-Identifier: Apache-2.0
//
// The allocations whose containers get their HCAs by CDI: a record of each, which outlives us and
// the node's next start, and a CDI spec, which says what the allocation means now.
//
// The records lie beside the rails files; the specs where container runtimes look for them, which
// is a folder that a restart of the node empties.
#ifndef RAILHEAD_DEVICE_PLUGIN_GRANT_ALLOCATION_STORE_H_
#define RAILHEAD_DEVICE_PLUGIN_GRANT_ALLOCATION_STORE_H_

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
#include "device-plugin/files/rails_files.h"
#include "device-plugin/grant/allocation.h"
#include "device-plugin/grant/allocation_record.h"
#include "device-plugin/offer/container_devices.h"
#include "device-plugin/offer/device_list.h"

namespace railhead::device_plugin {

// What kubelet tells when a container is about to start.
struct KubeletView {
  std::optional<std::vector<ContainerDevices>> listed;  // nothing when it does not answer
  std::map<std::string, std::string> gpu_uuids;         // see GpuAddress
};

// Thread-safe.
class AllocationStore {
 public:
  struct Options {
    std::string folder;   // for the records; made with the first
    std::string cdi_dir;  // for the specs; "": there are no new allocations, only what is there
    std::string node;     // its name in Kubernetes
  };

  // Reads what an earlier life has left. Fails when there is no such `cdi_dir` to write to. `files`
  // must outlive the store.
  static absl::StatusOr<std::unique_ptr<AllocationStore>> Make(Options options, RailsFiles* files);

  bool enabled() const { return !options_.cdi_dir.empty(); }

  // For Allocate: what these ids mean from now on. Returns the CDI device's full name.
  absl::StatusOr<std::string> Add(const DeviceSnapshot& snapshot, const std::string& resource,
                                  const std::vector<std::string>& ids);

  // For PreStartContainer: binds the container (late_binding.h), and writes its spec from the
  // devices as they are now. A container that has several of our resources has a spec of each; all
  // of them say the same, of all its HCAs. NotFound for ids that were never allocated.
  absl::Status Prepare(const DeviceSnapshot& snapshot, const std::string& resource,
                       const std::vector<std::string>& ids, const KubeletView& kubelet);

  // What is remembered.
  AllocationRecords records() const;

  // Takes what kubelet lists.
  void Look(const std::vector<ContainerDevices>& listed);

  // See allocation_record.h; by what kubelet listed last, or by all records before that.
  std::vector<ContainerDevices> AsBound(std::vector<ContainerDevices> listed) const;
  std::map<std::string, std::string> BoundElsewhere(const std::string& resource) const;

  // As RailsFiles does. `held`: by resource, the ids that containers hold.
  bool HasFilesUntil(absl::Time limit) const;
  absl::Status Collect(const std::map<std::string, std::set<std::string>>& held, absl::Time limit);

 private:
  AllocationStore(Options options, RailsFiles* files)
      : options_(std::move(options)), files_(*files) {}

  void Load();
  std::string RecordPath(const std::string& name) const;
  std::string SpecPath(const std::string& name) const;
  // Finished or not; the specs first, so that none of them is left without a record.
  std::vector<std::string> OurFiles() const;
  // With these ids and no others, in the order in which they were made.
  std::vector<AllocationRecord*> RecordsOf(const std::string& resource,
                                           const std::set<std::string>& ids);
  // What the record's container is bound to when it starts now. `holder`: it, if it is known.
  Binding BindingOf(const AllocationRecord& record, const DeviceSnapshot& snapshot,
                    const KubeletView& kubelet, const ContainerDevices* holder) const;
  // The records of what the container has of other resources than `resource`.
  std::vector<AllocationRecord*> BesidesOf(const ContainerDevices& holder,
                                           const std::string& resource);
  // Returns whether the spec was not there in this form already.
  absl::StatusOr<bool> Write(const AllocationRecord& record, const Allocation& allocation);

  const Options options_;
  RailsFiles& files_;
  mutable std::mutex mutex_;
  AllocationRecords records_;
  std::optional<std::vector<ContainerDevices>> listed_;
};

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_GRANT_ALLOCATION_STORE_H_
