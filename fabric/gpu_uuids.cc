// SPDX-License-Identifier: Apache-2.0
#include "fabric/gpu_uuids.h"

#include <map>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "fabric/pci_address.h"
#include "fabric/root_files.h"

namespace railhead::fabric {

std::map<std::string, std::string> ReadGpuUuids(const RootFiles& files) {
  constexpr char kFolder[] = "/proc/driver/nvidia/gpus";
  std::map<std::string, std::string> uuids;
  for (const std::string& address : files.List(kFolder).value_or(std::vector<std::string>())) {
    if (!ParsePciAddress(address).has_value()) continue;
    const std::vector<std::string> lines =
        files.ReadLines(absl::StrCat(kFolder, "/", address, "/information"))
            .value_or(std::vector<std::string>());
    for (absl::string_view line : lines) {
      if (!absl::ConsumePrefix(&line, "GPU UUID:")) continue;
      const absl::string_view uuid = absl::StripAsciiWhitespace(line);
      if (!uuid.empty()) uuids[std::string(uuid)] = address;
    }
  }
  return uuids;
}

}  // namespace railhead::fabric
