// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_RUNTIME_TESTING_HTTP_H_
#define RAILHEAD_RUNTIME_TESTING_HTTP_H_

#include <string>

#include "absl/strings/str_cat.h"
#include "runtime/base/now.h"
#include "runtime/testing/ranks.h"

namespace railhead::testing {

// What a scraper on this machine would get: headers and body.
inline std::string HttpGet(int port, const std::string& path) {
  const net::Fd fd = DialStranger(port);
  const absl::Time deadline = MonotonicNow() + absl::Seconds(20);
  const std::string request =
      absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  std::string response;
  if (!net::SendAll(fd.get(), request, deadline).ok()) return response;
  while (net::WaitReadable(fd.get(), deadline).ok()) {
    const absl::StatusOr<bool> open = net::ReceiveSome(fd.get(), 1 << 20, &response);
    if (!open.ok() || !*open) break;
  }
  return response;
}

}  // namespace railhead::testing

#endif  // RAILHEAD_RUNTIME_TESTING_HTTP_H_
