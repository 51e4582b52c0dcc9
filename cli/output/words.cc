// SPDX-License-Identifier: Apache-2.0
#include "cli/output/words.h"

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace railhead::cli {

std::string Plural(absl::string_view noun) {
  if (noun == "leaf") return "leaves";
  return absl::StrCat(noun, noun == "switch" ? "es" : "s");
}

std::string Counted(int64_t count, absl::string_view noun) {
  return absl::StrCat(count, " ", count == 1 ? std::string(noun) : Plural(noun));
}

}  // namespace railhead::cli
