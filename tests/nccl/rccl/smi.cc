// SPDX-License-Identifier: Apache-2.0
//
// The functions of AMD's system management library that RCCL calls (librocm_smi64.so.1): it reads
// the GPUs' places in the PCI tree, and their links.
#include <cstdint>
#include <cstring>

#define SMI_API extern "C" __attribute__((visibility("default")))

namespace {

constexpr uint32_t kDevices = 8;
constexpr uint64_t kFirstPciBus = 0x10;
constexpr int kSuccess = 0;
constexpr int kPciExpress = 1;

struct SmiVersion {
  uint32_t major, minor, patch;
  const char* build;
};

}  // namespace

SMI_API int rsmi_init(uint64_t /*flags*/) { return kSuccess; }
SMI_API int rsmi_version_get(SmiVersion* version) {
  *version = {5, 7, 0, ""};
  return kSuccess;
}
SMI_API int rsmi_status_string(int /*status*/, const char** text) {
  *text = "system management of emulated GPUs";
  return kSuccess;
}
SMI_API int rsmi_num_monitor_devices(uint32_t* count) {
  *count = kDevices;
  return kSuccess;
}
SMI_API int rsmi_dev_pci_id_get(uint32_t device, uint64_t* id) {
  *id = (kFirstPciBus + device) << 8U;
  return kSuccess;
}
SMI_API int rsmi_topo_get_link_type(uint32_t, uint32_t, uint64_t* hops, int* type) {
  *hops = 2;
  *type = kPciExpress;
  return kSuccess;
}
SMI_API int rsmi_topo_get_link_weight(uint32_t, uint32_t, uint64_t* weight) {
  *weight = 40;
  return kSuccess;
}
SMI_API int rsmi_minmax_bandwidth_get(uint32_t, uint32_t, uint64_t* least, uint64_t* most) {
  *least = *most = 50'000;
  return kSuccess;
}
