// SPDX-License-Identifier: Apache-2.0
//
// Implementation of Api (client.h) over libcurl: HTTPS, with a bearer token or a client
// certificate. Used by the agent, the operator and the CLI.
#ifndef RAILHEAD_KUBE_REST_CLIENT_H_
#define RAILHEAD_KUBE_REST_CLIENT_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "kube/client.h"
#include "kube/server_clock.h"

namespace railhead::kube {

struct ClientOptions {
  std::string server;  // "https://host:port", IPv6 addresses in brackets; https only
  // CA that must have signed the server's certificate: PEM, or else a file, read for every
  // connection.
  std::string ca_pem;
  std::string ca_file;
  // Returns the bearer token; called before every call, as tokens rotate. Not needed with a client
  // certificate.
  std::function<absl::StatusOr<std::string>()> token;
  std::string certificate_pem;  // client certificate, with its key; or neither
  std::string key_pem;
  // Host name or address that the server's certificate must have; the server's own if empty.
  std::string server_name;
  // "http://", "https://" or "socks5://" and host:port of a proxy; empty for none. The environment
  // is not looked at. The certificate of an https proxy must be signed by the cluster's CA.
  std::string proxy;
  // Limit of a call, from connecting to the last byte; for a stream, of connecting.
  absl::Duration timeout = absl::Seconds(5);
  size_t max_answer_bytes = 16U << 20U;  // of a call; streams are not limited
  // Gets the times of the server's responses, by MonotonicNow; null: none. Must outlive the client.
  ServerClock* server_clock = nullptr;
};

// Keeps connections open between calls. Thread-safe. The program must ignore SIGPIPE.
class RestClient final : public Api {
 public:
  explicit RestClient(ClientOptions options);
  ~RestClient() override;

  // Retries once after a 401 if the token has changed since the call began.
  absl::StatusOr<Json> Call(const ApiRequest& request) override;
  // Retries like Call. Unavailable if the answer is not JSON; objects before that have been
  // visited.
  absl::StatusOr<Json> CallList(const ApiRequest& request,
                                absl::FunctionRef<absl::Status(const Json& object)> visit) override;
  // Retries like Call. Detects `stop` and a stalled stream within a second.
  absl::Status Stream(const StreamRequest& request,
                      const std::function<absl::Status(absl::string_view)>& on_bytes) override;

  // Ends calls in progress, and all later ones, with Cancelled.
  void Cancel();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace railhead::kube

#endif  // RAILHEAD_KUBE_REST_CLIENT_H_
