// SPDX-License-Identifier: Apache-2.0
#include "runtime/metrics/page_request.h"

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"

namespace railhead::metrics {
namespace {

constexpr absl::string_view kHeadEnd = "\r\n\r\n";

}  // namespace

PageRequest ReadPageRequest(absl::string_view bytes) {
  const size_t end = bytes.substr(0, kLongestRequest).find(kHeadEnd);
  if (end == absl::string_view::npos) {
    return bytes.size() < kLongestRequest ? PageRequest::kIncomplete : PageRequest::kMalformed;
  }
  const std::vector<absl::string_view> words =
      absl::StrSplit(bytes.substr(0, bytes.find("\r\n")), ' ');
  if (words.size() != 3 || !absl::StartsWith(words[2], "HTTP/1.") ||
      !absl::StartsWith(words[1], "/")) {
    return PageRequest::kMalformed;
  }
  if (words[0] != "GET" && words[0] != "HEAD") return PageRequest::kNotAllowed;
  if (words[1].substr(0, words[1].find('?')) != "/metrics") return PageRequest::kNotFound;
  return words[0] == "GET" ? PageRequest::kPage : PageRequest::kHead;
}

}  // namespace railhead::metrics
