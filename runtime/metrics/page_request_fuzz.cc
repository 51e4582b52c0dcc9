// SPDX-License-Identifier: Apache-2.0
//
// Whatever a client sends to the metrics page: a request that is complete stays what it is, however
// much follows it, and an incomplete one is never answered with the page.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "runtime/metrics/page_request.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using railhead::metrics::PageRequest;
  using railhead::metrics::ReadPageRequest;
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  const PageRequest whole = ReadPageRequest(bytes);
  if (whole == PageRequest::kIncomplete && size >= railhead::metrics::kLongestRequest) std::abort();
  if (whole != PageRequest::kIncomplete && ReadPageRequest(absl::StrCat(bytes, "more")) != whole) {
    std::abort();
  }
  for (size_t length = 0; length < size && length < 64; ++length) {
    const PageRequest part = ReadPageRequest(bytes.substr(0, length));
    if (part != PageRequest::kIncomplete && part != whole) std::abort();
  }
  return 0;
}
