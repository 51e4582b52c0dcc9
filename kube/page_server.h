// SPDX-License-Identifier: Apache-2.0
//
// Serves pages that this process makes when they are requested: kubelet's probes (/healthz,
// /readyz) and Prometheus' /metrics. Probes have a thread of their own.
//
//   auto server = PageServer::Start("--health-address", ":8080", {{"/healthz", [] {
//                                     return HttpResponse{.body = "ok\n"};
//                                   }}});
#ifndef RAILHEAD_KUBE_PAGE_SERVER_H_
#define RAILHEAD_KUBE_PAGE_SERVER_H_

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "kube/http_server.h"

namespace railhead::kube {

// Gives a server the limits of one for pages: few request them, seldom, with small requests;
// /healthz and /readyz are probes.
void SetLimitsOfPages(HttpServerOptions& options);

class PageServer {
 public:
  // Paths ("/healthz") to what makes the page. Called from the server's threads, several at once.
  using Pages = std::map<std::string, std::function<HttpResponse()>>;

  // Answers GET and HEAD of the paths in `pages` until destroyed. `address` is "host:port",
  // "[v6]:port" or, for all addresses of both families, ":port"; port 0 takes a free one.
  // InvalidArgument when it is none of these, Unavailable when the port is taken; both name `flag`,
  // which the address came from.
  static absl::StatusOr<std::unique_ptr<PageServer>> Start(const std::string& flag,
                                                           const std::string& address, Pages pages);

  int port() const { return server_.port(); }

 private:
  PageServer(HttpServerOptions options, Pages pages);

  HttpServer server_;
};

}  // namespace railhead::kube

#endif  // RAILHEAD_KUBE_PAGE_SERVER_H_
