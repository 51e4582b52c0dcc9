// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_OPERATOR_SERVE_H_
#define RAILHEAD_OPERATOR_SERVE_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "kube/client.h"
#include "operator/config.h"

namespace railhead::op {

struct ServeOptions {
  std::string space;                  // namespace of the Service and the Secret
  std::string service;                // through which the API server reaches the webhook
  std::string webhook_configuration;  // a MutatingWebhookConfiguration
  std::string ca_secret;
  std::string lease;     // by which the replicas agree on one that writes; in `space`
  std::string identity;  // of this replica; another one after every start
  std::string address;   // to listen on; empty is all
  int port = 9443;
  int health_port = 8080;
  absl::Duration check_interval = absl::Seconds(5);  // of certificates and caBundle
  absl::Duration retry_interval = absl::Seconds(2);  // until they are right
};

// The running operator: the webhook over HTTPS; /healthz, /readyz and /metrics over HTTP; a thread
// that keeps the API server's trust; and the controllers. Ready as soon as the API server trusts
// the webhook and all profiles are known; later, an API server that is away makes it no less ready.
class Operator {
 public:
  // `api` must outlive the operator; a call of it may take long, so cancel it before Stop.
  Operator(ServeOptions options, InjectionConfig config, kube::Api* api);
  ~Operator();

  // Unavailable when a port cannot be had.
  absl::Status Start();
  int port() const;
  int health_port() const;

  // Neither ready nor leading any more, and still serving: what a replica does when it is about to
  // go, until nobody is sent to it.
  void Drain();
  // Ends all threads. The requests in progress are answered.
  void Stop();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_SERVE_H_
