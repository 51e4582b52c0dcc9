// SPDX-License-Identifier: Apache-2.0
#include "cli/output/command.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "kube/object_name.h"

namespace railhead::cli {

std::string Command(absl::string_view format, std::initializer_list<absl::string_view> names) {
  std::vector<std::pair<std::string, absl::string_view>> places;
  for (const absl::string_view name : names) {
    places.emplace_back(absl::StrCat("$", places.size()), kube::IsObjectName(name) ? name : "NAME");
  }
  return absl::StrReplaceAll(format, places);
}

}  // namespace railhead::cli
