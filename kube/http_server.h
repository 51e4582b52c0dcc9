// SPDX-License-Identifier: Apache-2.0
//
// A small HTTP/1.1 server for machines as clients: webhooks, probes, metrics. Every connection is
// bounded in time, in memory and in number of threads, so that no client can hold it up.
#ifndef RAILHEAD_KUBE_HTTP_SERVER_H_
#define RAILHEAD_KUBE_HTTP_SERVER_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "kube/tls_identity.h"

namespace railhead::kube {

struct HttpRequest {
  std::string method;  // "GET" or "POST"
  std::string path;    // without the query
  std::string content_type;
  std::string body;
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
};

// Called on the server's threads, several at once.
using HttpHandler = std::function<HttpResponse(const HttpRequest&)>;

struct HttpServerOptions {
  std::string address;  // to bind; empty is every address, IPv6 and IPv4
  int port = 0;         // 0 takes a free one
  int threads = 16;     // requests answered at once
  size_t max_body_bytes = 4U << 20U;
  absl::Duration request_timeout = absl::Seconds(10);  // from its first byte to the answer's last
  // Between the requests of a connection. Longer than the 90 s after which an API server closes
  // idle connections itself: were we first, it could be sending a request that would be lost.
  absl::Duration idle_timeout = absl::Seconds(120);
  // Null serves plain HTTP. Until it has a certificate, connections are closed at once. Must
  // outlive the server.
  const TlsIdentity* identity = nullptr;
};

// Making one has the whole process ignore SIGPIPE.
class HttpServer {
 public:
  HttpServer(HttpServerOptions options, HttpHandler handler);
  ~HttpServer();  // stops

  // Binds and serves. Unavailable when the port cannot be had. Call it once.
  absl::Status Start();
  // The port it listens on; valid after Start.
  int port() const;
  // Refuses new connections, finishes the requests in progress (each within its timeout), returns
  // when all threads have ended.
  void Stop();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace railhead::kube

#endif  // RAILHEAD_KUBE_HTTP_SERVER_H_
