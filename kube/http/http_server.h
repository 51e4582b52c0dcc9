// SPDX-License-Identifier: Apache-2.0
//
// Small HTTP/1.1 server for webhooks, probes and metrics. It bounds connections, memory and time,
// whatever clients do. One thread does all I/O without blocking; handlers get complete requests
// only. Under overload the client that uses most loses first (http_fairness.h).
#ifndef RAILHEAD_KUBE_HTTP_HTTP_SERVER_H_
#define RAILHEAD_KUBE_HTTP_HTTP_SERVER_H_

#include <cstddef>
#include <memory>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "kube/auth/tls_identity.h"
#include "kube/http/http_response.h"

namespace railhead::kube {

struct HttpServerOptions {
  std::string address;  // bind address; empty: all addresses, IPv6 and IPv4
  int port = 0;         // 0: any free port
  // Requests handled concurrently, besides a probe. At most half of them are large ones.
  int threads = 16;
  // A separate thread handles requests of these paths, so that other requests cannot delay them.
  // Their handlers should take microseconds.
  std::set<std::string> probe_paths;
  size_t max_body_bytes = 4U << 20U;
  // Limit of all requests and responses in memory. The server may exceed it by one buffer's growth,
  // and by small requests, of at most max_bytes / max_connections each: large ones do not displace
  // them.
  size_t max_bytes = 16U << 20U;
  size_t max_connections = 512;
  size_t max_connections_of_source = 256;
  // Limits of time: from the connection, or the first byte of a request, to the end of the head; of
  // the whole body; of the whole response.
  absl::Duration head_timeout = absl::Seconds(10);
  absl::Duration body_timeout = absl::Seconds(10);
  absl::Duration answer_timeout = absl::Seconds(10);
  // Time between requests of a connection. Longer than the 90 s after which an API server closes
  // idle connections: if the server closed first, a request in flight would be lost.
  absl::Duration idle_timeout = absl::Seconds(120);
  // Null: plain HTTP. Without a certificate, connections are closed at once. Must outlive the
  // server.
  const TlsIdentity* identity = nullptr;
};

// Construction makes the process ignore SIGPIPE. Thread-safe after Start.
class HttpServer {
 public:
  HttpServer(HttpServerOptions options, HttpHandler handler);
  ~HttpServer();  // stops

  // Binds and serves. Unavailable if the port cannot be bound. Call it once.
  absl::Status Start();
  // Port in use; valid after Start.
  int port() const;
  // Refuses new connections, finishes requests that have begun (within their timeouts), and returns
  // after all threads ended.
  void Stop();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace railhead::kube

#endif  // RAILHEAD_KUBE_HTTP_HTTP_SERVER_H_
