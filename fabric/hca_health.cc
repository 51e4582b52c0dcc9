// SPDX-License-Identifier: Apache-2.0
#include "fabric/hca_health.h"

#include <cstddef>
#include <iterator>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"

namespace railhead::fabric {

absl::string_view ToString(Stage stage) {
  constexpr absl::string_view kNames[] = {"missing",     "hang",           "identity",
                                          "rules",       "shared-address", "symbol-errors",
                                          "renumbering", "flap-damping",   "assignment"};
  static_assert(std::size(kNames) == static_cast<size_t>(Stage::kAssignment) + 1);
  return kNames[static_cast<size_t>(stage)];
}

void Health::Set(Stage stage, std::string text) {
  if (text.empty()) {
    troubles_.erase(stage);
  } else {
    troubles_[stage] = std::move(text);
  }
}

std::string Health::Text() const {
  return absl::StrJoin(troubles_, "; ", [](std::string* out, const auto& trouble) {
    absl::StrAppend(out, trouble.second);
  });
}

}  // namespace railhead::fabric
