// SPDX-License-Identifier: Apache-2.0
#include "kube/http/page_server.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace railhead::kube {
namespace {

HttpResponse PageOf(const PageServer::Pages& pages, const HttpRequest& request) {
  const auto page = pages.find(request.path);
  if (page == pages.end()) return {404, "text/plain; charset=utf-8", "not found\n"};
  if (request.method != "GET") return {405, "text/plain; charset=utf-8", "use GET\n"};
  return page->second();
}

}  // namespace

void SetLimitsOfPages(HttpServerOptions& options) {
  options.threads = 2;
  options.probe_paths = {"/healthz", "/readyz"};
  options.max_body_bytes = 1U << 10U;
  options.max_bytes = 8U << 20U;
  options.max_connections = 128;
  options.max_connections_of_source = 64;
}

PageServer::PageServer(HttpServerOptions options, Pages pages)
    : server_(std::move(options), [pages = std::move(pages)](const HttpRequest& request) {
        return PageOf(pages, request);
      }) {}

absl::StatusOr<std::unique_ptr<PageServer>> PageServer::Start(const std::string& flag,
                                                              const std::string& address,
                                                              Pages pages) {
  const size_t colon = address.rfind(':');
  HttpServerOptions options;
  if (colon == std::string::npos || !absl::SimpleAtoi(address.substr(colon + 1), &options.port) ||
      options.port < 0 || options.port > 65535) {
    return absl::InvalidArgumentError(absl::StrCat(flag, " ", address, " is not host:port"));
  }
  std::string host = address.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  options.address = host;
  SetLimitsOfPages(options);
  std::unique_ptr<PageServer> self(new PageServer(std::move(options), std::move(pages)));
  if (absl::Status started = self->server_.Start(); !started.ok()) {
    return absl::Status(started.code(), absl::StrCat(flag, " ", address, ": ", started.message()));
  }
  return self;
}

}  // namespace railhead::kube
