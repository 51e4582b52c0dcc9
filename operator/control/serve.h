// SPDX-License-Identifier: Apache-2.0
//
// The running operator: webhook over HTTPS; /healthz, /readyz and /metrics over HTTP; a thread that
// keeps the API server's trust; the controllers. Used by main.cc.
#ifndef RAILHEAD_OPERATOR_CONTROL_SERVE_H_
#define RAILHEAD_OPERATOR_CONTROL_SERVE_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "kube/client.h"
#include "kube/monotonic.h"
#include "operator/config/config.h"

namespace railhead::op {

struct ServeOptions {
  std::string space;                  // namespace of the Service and the Secret
  std::string service;                // through which the API server reaches the webhook
  std::string webhook_configuration;  // name of a MutatingWebhookConfiguration
  std::string ca_secret;
  std::string lease;     // of leader election; in `space`
  std::string identity;  // of this replica; differs after each start
  std::string address;   // to listen on; empty: all
  int port = 9443;
  int health_port = 8080;
  absl::Duration check_interval = absl::Seconds(5);  // of certificates and caBundle
  absl::Duration retry_interval = absl::Seconds(2);  // while they are not valid
  // The API server's clock, for ages of gangs. Called concurrently.
  std::function<absl::Time()> server_time = kube::SteadyTimeOfDay();
};

// Ready once the API server trusts the webhook and all profiles are known. Later, losing the API
// server does not make it unready.
class Operator {
 public:
  // `api` must outlive the operator. API calls may take long, so cancel them before Stop.
  Operator(ServeOptions options, InjectionConfig config, kube::Api* api);
  ~Operator();

  // Returns Unavailable if a port is not available.
  absl::Status Start();
  int port() const;
  int health_port() const;

  // Becomes unready and releases leadership, but still serves. Call before Stop, and wait until no
  // more requests arrive.
  void Drain();
  // Ends all threads after answering requests in progress.
  void Stop();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_CONTROL_SERVE_H_
