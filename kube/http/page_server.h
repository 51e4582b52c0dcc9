// SPDX-License-Identifier: Apache-2.0
//
// HTTP server of generated pages: kubelet's probes (/healthz, /readyz) and Prometheus' /metrics.
// Probes have a separate thread.
//
//   auto server = PageServer::Start("--health-address", ":8080", {{"/healthz", [] {
//                                     return HttpResponse{.body = "ok\n"};
//                                   }}});
#ifndef RAILHEAD_KUBE_HTTP_PAGE_SERVER_H_
#define RAILHEAD_KUBE_HTTP_PAGE_SERVER_H_

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "kube/http/http_server.h"

namespace railhead::kube {

// Sets limits suited to pages: few clients, rare and small requests. /healthz and /readyz are
// probes.
void SetLimitsOfPages(HttpServerOptions& options);

class PageServer {
 public:
  // Path ("/healthz") to the function that generates the page. Called concurrently on the server's
  // threads.
  using Pages = std::map<std::string, std::function<HttpResponse()>>;

  // Serves GET and HEAD of `pages` until destroyed. `address` is "host:port", "[v6]:port" or, for
  // all addresses of both families, ":port"; port 0 is any free port. InvalidArgument if the
  // address has another form, Unavailable if the port is taken; both name `flag`, the command-line
  // option of the address.
  static absl::StatusOr<std::unique_ptr<PageServer>> Start(const std::string& flag,
                                                           const std::string& address, Pages pages);

  int port() const { return server_.port(); }

 private:
  PageServer(HttpServerOptions options, Pages pages);

  HttpServer server_;
};

}  // namespace railhead::kube

#endif  // RAILHEAD_KUBE_HTTP_PAGE_SERVER_H_
