// SPDX-License-Identifier: Apache-2.0
//
// A host's tree whose files hold anything: nothing that reads sysfs may crash, and what is printed
// of it is JSON. The input is cut at each zero byte; the pieces become the contents of the files in
// kFiles, in that order, or, where a link could stand, its target.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "fabric/gpu_uuids.h"
#include "fabric/hca_rules.h"
#include "fabric/inventory_json.h"
#include "fabric/port_counters.h"
#include "fabric/root_files.h"
#include "fabric/sysfs_reader.h"
#include "fabric/testing/sysfs_tree.h"

namespace {

// A trailing '@' makes a link.
constexpr const char* kFiles[] = {
    "/sys/class/infiniband/a/ports/1/state",
    "/sys/class/infiniband/a/ports/1/phys_state",
    "/sys/class/infiniband/a/ports/1/rate",
    "/sys/class/infiniband/a/ports/1/link_layer",
    "/sys/class/infiniband/a/device@",
    "/sys/class/infiniband/a/parent",
    "/sys/class/infiniband/a/node_type",
    "/sys/class/infiniband/a/ports/1/gid_attrs/types/0",
    "/sys/class/infiniband/a/ports/1/gid_attrs/ndevs/0",
    "/sys/class/infiniband/a/ports/1/gids/0",
    "/sys/class/infiniband/a/ports/1/counters/port_xmit_data",
    "/sys/class/infiniband/a/ports/1/counters/link_downed",
    "/sys/class/infiniband/a/ports/1/hw_counters/np_cnp_sent",
    "/sys/class/infiniband_verbs/uverbs0/ibdev",
    "/sys/class/infiniband_verbs/uverbs0/dev",
    "/sys/bus/pci/devices/0000:01:00.0@",
    "/sys/bus/pci/devices/0000:02:00.0/class",
    "/sys/bus/pci/devices/0000:02:00.0/vendor",
    "/sys/bus/pci/devices/0000:02:00.0/device",
    "/sys/bus/pci/devices/0000:02:00.0/numa_node",
    "/proc/driver/nvidia/gpus/0000:02:00.0/information",
    "/sys/class/net/eth0/phys_port_name",
    "/sys/class/net/eth0/flags",
    "/sys/bus/pci/devices/0000:02:00.0/vpd",
    "/sys/bus/pci/devices/0000:02:00.0/physfn@",
};

void Put(const railhead::fabric::testing::SysfsTree& tree, absl::string_view file,
         const std::string& content) {
  if (!absl::ConsumeSuffix(&file, "@")) return tree.Write(std::string(file), content);
  const std::string target = content.substr(0, content.find('\0')).substr(0, 1000);
  if (!target.empty()) tree.Link(std::string(file), target);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace fabric = railhead::fabric;
  static const fabric::testing::SysfsTree tree;
  const absl::string_view input(reinterpret_cast<const char*>(data), size);
  const std::vector<std::string> pieces = absl::StrSplit(input, '\0');
  for (size_t i = 0; i < std::size(kFiles); ++i) {
    Put(tree, kFiles[i], i < pieces.size() ? pieces[i] : "");
  }
  const auto inventory = fabric::ReadInventory(tree.root());
  if (inventory.ok()) {
    if (!nlohmann::json::accept(fabric::ToJson(*inventory))) std::abort();
    const auto files = fabric::RootFiles::Open(tree.root());
    for (const fabric::Hca& hca : inventory->hcas) {
      fabric::TroubleOf(hca, fabric::PodNetwork::kHost);
      fabric::ReadPortCounters(*files, hca.name, 1);
    }
    fabric::ReadGpuUuids(*files);
  }
  return 0;
}
