// SPDX-License-Identifier: Apache-2.0
//
// A small HTTP/1.1 server for machines as clients: webhooks, probes, metrics. Whatever clients do,
// it is bounded in connections, memory and time, and answers those that behave: one thread does all
// I/O without blocking, handlers see complete requests only, and when something is full, whoever
// takes most of it gives way (http_fairness.h).
#ifndef RAILHEAD_KUBE_HTTP_SERVER_H_
#define RAILHEAD_KUBE_HTTP_SERVER_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "kube/http_request_reader.h"
#include "kube/tls_identity.h"

namespace railhead::kube {

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
  int threads = 16;     // requests answered at once, besides a probe
  // Requests of these paths are answered by a thread of their own, so that no other request can
  // delay them. Their answers should take microseconds.
  std::set<std::string> probe_paths;
  size_t max_body_bytes = 4U << 20U;
  // Of all requests and answers in memory. The server may exceed it by one buffer's growth.
  size_t max_bytes = 16U << 20U;
  size_t max_connections = 512;
  size_t max_connections_of_source = 256;
  // From a connection, or a request's first byte, to the end of the request's head; of the whole
  // body; and of the whole answer.
  absl::Duration head_timeout = absl::Seconds(10);
  absl::Duration body_timeout = absl::Seconds(10);
  absl::Duration answer_timeout = absl::Seconds(10);
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
  // Refuses new connections, finishes the requests that have begun (each within its timeouts),
  // returns when all threads have ended.
  void Stop();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace railhead::kube

#endif  // RAILHEAD_KUBE_HTTP_SERVER_H_
