// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/config/resource_name.h"

#include <algorithm>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace railhead::device_plugin {
namespace {

bool IsLetterOrDigit(char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)); }

// Returns whether the text consists of letters, digits and `others`, with a letter or digit at both
// ends.
bool IsWord(absl::string_view text, absl::string_view others, size_t longest) {
  return !text.empty() && text.size() <= longest && IsLetterOrDigit(text.front()) &&
         IsLetterOrDigit(text.back()) && std::all_of(text.begin(), text.end(), [others](char c) {
           return IsLetterOrDigit(c) || others.find(c) != absl::string_view::npos;
         });
}

bool IsDomain(absl::string_view text) {
  constexpr size_t kLongest = 253 - 9;  // quota puts "requests." before it
  if (text.size() > kLongest) return false;
  const std::vector<absl::string_view> labels = absl::StrSplit(text, '.');
  return std::all_of(labels.begin(), labels.end(), [](absl::string_view label) {
    return IsWord(label, "-", 63) && std::none_of(label.begin(), label.end(), [](char c) {
             return absl::ascii_isupper(static_cast<unsigned char>(c));
           });
  });
}

}  // namespace

absl::Status CheckResourceName(absl::string_view resource) {
  const std::vector<absl::string_view> parts = absl::StrSplit(resource, '/');
  if (parts.size() == 2 && IsDomain(parts[0]) && IsWord(parts[1], "-_.", 63) &&
      !absl::StrContains(resource, "kubernetes.io") && !absl::StartsWith(resource, "requests.")) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--resource ", resource,
                   " is not a name that kubelet accepts; it must be domain/name, such as rdma/hca, "
                   "and not in kubernetes.io"));
}

}  // namespace railhead::device_plugin
