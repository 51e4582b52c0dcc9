// SPDX-License-Identifier: Apache-2.0
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

namespace railhead::kube {

struct ClientOptions {
  std::string server;  // "https://host:port", IPv6 addresses in brackets; only https
  // What the server's certificate must be signed by, in PEM: here, or else in a file, which is read
  // anew for every connection.
  std::string ca_pem;
  std::string ca_file;
  // Asked before every call, since tokens rotate. Returns the bearer token. May be empty where
  // there is a client certificate.
  std::function<absl::StatusOr<std::string>()> token;
  std::string certificate_pem;  // the client's, with its key; or neither
  std::string key_pem;
  // Of one call, from connecting to the last byte; of a stream, until the server is connected.
  absl::Duration timeout = absl::Seconds(5);
  size_t max_answer_bytes = 16U << 20U;  // of a call; a stream may go on
};

// Api over libcurl. Connections are kept and reused between calls. The program must ignore SIGPIPE.
class RestClient final : public Api {
 public:
  explicit RestClient(ClientOptions options);
  ~RestClient() override;

  // A call refused with 401 is tried a second time when the token has changed meanwhile.
  absl::StatusOr<Json> Call(const ApiRequest& request) override;
  // So is a stream. Being stopped, and silence, are noticed within a second.
  absl::Status Stream(const StreamRequest& request,
                      const std::function<absl::Status(absl::string_view)>& on_bytes) override;

  // Ends the calls in progress, and all later ones, with Cancelled.
  void Cancel();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace railhead::kube

#endif  // RAILHEAD_KUBE_REST_CLIENT_H_
