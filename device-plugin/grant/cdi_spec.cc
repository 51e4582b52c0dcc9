// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/grant/cdi_spec.h"

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace railhead::device_plugin {
namespace {

using Json = nlohmann::ordered_json;

// The oldest version in use; it has all the fields below except netDevices.
constexpr char kCdiVersion[] = "0.3.0";
constexpr char kCdiVersionOfNetDevices[] = "1.1.0";

}  // namespace

bool IsCdiName(absl::string_view name) {
  constexpr size_t kMaxName = 63;
  return !name.empty() && name.size() <= kMaxName && absl::ascii_isalpha(name.front()) &&
         absl::ascii_isalnum(name.back()) && std::all_of(name.begin(), name.end(), [](char c) {
           return absl::ascii_isalnum(c) || c == '_' || c == '-' || c == '.';
         });
}

std::string ToCdiSpec(const std::string& name, const Allocation& allocation,
                      const std::string& rails_path) {
  Json nodes = Json::array();
  for (const std::string& path : allocation.char_devices) {
    nodes.push_back({{"path", path}, {"permissions", "rw"}});  // no mknod
  }
  Json edits;
  edits["env"] = Json::array({absl::StrCat("NCCL_IB_HCA=", allocation.nccl_ib_hca)});
  edits["deviceNodes"] = nodes;
  edits["mounts"] = Json::array({{{"hostPath", rails_path},
                                  {"containerPath", kRailsPathInPod},
                                  {"options", {"ro", "nosuid", "nodev", "noexec", "bind"}}}});
  for (const MovedInterface& interface : allocation.interfaces) {
    edits["netDevices"].push_back(
        {{"hostInterfaceName", interface.host_name}, {"name", interface.name}});
  }
  Json device;
  device["name"] = name;
  device["containerEdits"] = edits;
  Json spec;
  spec["cdiVersion"] = allocation.interfaces.empty() ? kCdiVersion : kCdiVersionOfNetDevices;
  spec["kind"] = kCdiKind;
  spec["devices"] = Json::array({device});
  return spec.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace railhead::device_plugin
