// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/files/topology_files.h"

#include <mutex>
#include <string>

#include "device-plugin/files/atomic_file.h"
#include "fabric/cpu_model.h"
#include "fabric/nccl_topology.h"
#include "fabric/pci_attributes.h"
#include "fabric/root_files.h"

namespace railhead::device_plugin {
namespace {

constexpr char kTopologyPrefix[] = "nccl-topology-";
constexpr char kTopologySuffix[] = ".xml";

}  // namespace

absl::StatusOr<std::string> TopologyFiles::Store(const fabric::NodeInventory& inventory) {
  const absl::StatusOr<fabric::RootFiles> files = fabric::RootFiles::Open(root_);
  if (!files.ok()) return files.status();
  const std::string xml = fabric::NcclTopology(
      inventory, fabric::ReadPciAttributes(*files, inventory), fabric::ThisCpuModel());
  const std::lock_guard<std::mutex> lock(mutex_);
  return StoreByContent(folder_, kTopologyPrefix, kTopologySuffix, xml);
}

bool TopologyFiles::HasFilesUntil(absl::Time limit) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return AnyNotYoungerThan(ListFiles(folder_, kTopologyPrefix, kTopologySuffix), limit);
}

absl::Status TopologyFiles::Collect(bool in_use, absl::Time limit) {
  absl::Status status;
  if (in_use) return status;
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const std::string& path : ListFiles(folder_, kTopologyPrefix, kTopologySuffix)) {
    if (NotYoungerThan(path, limit)) status.Update(RemoveFile(path));
  }
  status.Update(RemoveEmptyFolder(folder_));
  return status;
}

}  // namespace railhead::device_plugin
