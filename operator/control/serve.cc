// SPDX-License-Identifier: Apache-2.0
#include "operator/control/serve.h"

#include <spdlog/spdlog.h>

#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "kube/auth/certificate_keeper.h"
#include "kube/auth/tls_identity.h"
#include "kube/http/http_server.h"
#include "kube/http/page_server.h"
#include "kube/monotonic.h"
#include "operator/control/controllers.h"
#include "operator/control/metrics.h"
#include "operator/control/webhook.h"

namespace railhead::op {
namespace {

kube::CertificateKeeperOptions KeeperOptions(const ServeOptions& options) {
  kube::CertificateKeeperOptions keeper;
  keeper.secret = {"v1", "secrets", options.space, options.ca_secret};
  keeper.configuration = {"admissionregistration.k8s.io/v1", "mutatingwebhookconfigurations", "",
                          options.webhook_configuration};
  keeper.authority_name = absl::StrCat(options.service, " webhook authority");
  const std::string service = absl::StrCat(options.service, ".", options.space);
  keeper.dns_names = {service + ".svc", service, service + ".svc.cluster.local"};
  return keeper;
}

kube::HttpServerOptions ServerOptions(const ServeOptions& options, int port) {
  kube::HttpServerOptions server;
  server.address = options.address;
  server.port = port;
  return server;
}

// Maximum delay between a process and the other objects of its installation.
constexpr absl::Duration kUntilInstalled = absl::Seconds(10);

}  // namespace

class Operator::Impl {
 public:
  Impl(ServeOptions options, InjectionConfig config, kube::Api* api)
      : options_(std::move(options)),
        keeper_(KeeperOptions(options_), api, &identity_, absl::Now),
        controllers_({.space = options_.space,
                      .lease = options_.lease,
                      .identity = options_.identity,
                      .server_time = options_.server_time,
                      .excluded_namespaces = config.excluded_namespaces,
                      .namespaces = config.namespaces,
                      .rdma_resources = config.rdma_resources,
                      .verdicts = config.verdicts,
                      .tell_missed_pods = config.tell_missed_pods,
                      .memlock_raised = config.memlock_raised,
                      .gangs = config.gangs,
                      .gang_reserve_after = config.gang_reserve_after,
                      .topology = config.topology,
                      .publish_topology = config.publish_topology},
                     api),
        webhook_(
            std::move(config), [this] { return controllers_.Profiles(); }, &metrics_),
        https_(HttpsOptions(),
               [this](const kube::HttpRequest& request) { return webhook_.Handle(request); }),
        http_(HttpOptions(), [this](const kube::HttpRequest& request) { return Probe(request); }) {}

  absl::Status Start() {
    if (absl::Status started = https_.Start(); !started.ok()) return started;
    if (absl::Status started = http_.Start(); !started.ok()) return started;
    controllers_.SetAdmissionSince(absl::InfiniteFuture());  // until that is known
    controllers_.Start();
    keeper_thread_ = std::thread([this] { KeepTrust(); });
    return absl::OkStatus();
  }

  int port() const { return https_.port(); }
  int health_port() const { return http_.port(); }

  void Drain() {
    controllers_.StopLeading();
    const std::lock_guard<std::mutex> lock(mutex_);
    draining_ = true;
  }

  void Stop() {
    if (!keeper_thread_.joinable()) return;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stopping_ = true;
    }
    stop_.notify_all();
    controllers_.Stop();
    keeper_thread_.join();
    https_.Stop();
    http_.Stop();
  }

 private:
  kube::HttpServerOptions HttpsOptions() const {
    kube::HttpServerOptions server = ServerOptions(options_, options_.port);
    server.identity = &identity_;
    return server;
  }

  kube::HttpServerOptions HttpOptions() const {
    kube::HttpServerOptions server = ServerOptions(options_, options_.health_port);
    kube::SetLimitsOfPages(server);
    return server;
  }

  kube::HttpResponse Probe(const kube::HttpRequest& request) {
    if (request.path == "/healthz") return {200, "text/plain; charset=utf-8", "ok\n"};
    if (request.path == "/metrics") {
      controllers_.Report(metrics_);
      return {200, "text/plain; version=0.0.4", metrics_.Text()};
    }
    if (request.path == "/readyz") {
      const std::string why_not = WhyNotReady();
      return {why_not.empty() ? 200 : 503, "text/plain; charset=utf-8",
              why_not.empty() ? "ok\n" : absl::StrCat("not ready: ", why_not, "\n")};
    }
    return {404, "text/plain; charset=utf-8", "not found; try /healthz, /readyz or /metrics\n"};
  }

  // Empty when it is.
  std::string WhyNotReady() {
    const absl::Status synced = controllers_.Synced();
    const std::lock_guard<std::mutex> lock(mutex_);
    if (draining_) return "stopping";
    if (!synced.ok()) return std::string(synced.message());
    return why_not_trusted_;
  }

  void SetTrust(bool trusted, absl::string_view why_not) {
    metrics_.SetTrusted(trusted);
    const std::lock_guard<std::mutex> lock(mutex_);
    const bool was_trusted = why_not_trusted_.empty();
    why_not_trusted_ = trusted ? "" : std::string(why_not);
    if (trusted && !was_trusted) spdlog::info("the API server trusts this webhook");
    if (!trusted && was_trusted) spdlog::warn("no longer ready: {}", why_not_trusted_);
  }

  // Pods older than the webhook's configuration have not missed it. Without a configuration all
  // pods have, unless it is still being installed.
  void TellSinceWhenPodsPass(const absl::Status& looked, absl::Time begin) {
    if (const std::optional<absl::Time> created = keeper_.configuration_created()) {
      controllers_.SetAdmissionSince(*created);
    } else if (absl::IsNotFound(looked) && kube::MonotonicNow() - begin > kUntilInstalled) {
      controllers_.SetAdmissionSince(absl::InfinitePast());
    }
  }

  void KeepTrust() {
    const absl::Time begin = kube::MonotonicNow();
    std::string last_error;
    for (;;) {
      const absl::StatusOr<std::vector<std::string>> log = keeper_.Reconcile();
      const std::string error(log.status().message());
      if (log.ok()) {
        for (const std::string& line : *log) spdlog::info("certificates: {}", line);
      } else if (error != last_error) {  // log an error once
        spdlog::error("certificates: {}", error);
      }
      last_error = error;
      TellSinceWhenPodsPass(log.status(), begin);
      const bool trusted = keeper_.Trusted();
      metrics_.CountCertificateCheck(log.ok());
      metrics_.SetCertificateExpiry(keeper_.authority_expiry(), keeper_.serving_expiry());
      SetTrust(trusted,
               error.empty() ? "waiting for the API server to load the new caBundle" : error);
      const absl::Duration pause =
          trusted && last_error.empty() ? options_.check_interval : options_.retry_interval;
      std::unique_lock<std::mutex> lock(mutex_);
      if (stop_.wait_for(lock, absl::ToChronoNanoseconds(pause), [this] { return stopping_; })) {
        return;
      }
    }
  }

  const ServeOptions options_;
  Metrics metrics_;
  kube::TlsIdentity identity_;
  kube::CertificateKeeper keeper_;  // used by keeper_thread_ alone
  Controllers controllers_;
  Webhook webhook_;
  kube::HttpServer https_;
  kube::HttpServer http_;

  std::mutex mutex_;  // guards all below but the thread
  bool draining_ = false;
  std::string why_not_trusted_ = "starting";  // empty: ready
  bool stopping_ = false;
  std::condition_variable stop_;
  std::thread keeper_thread_;
};

Operator::Operator(ServeOptions options, InjectionConfig config, kube::Api* api)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(config), api)) {}
Operator::~Operator() { Stop(); }
absl::Status Operator::Start() { return impl_->Start(); }
int Operator::port() const { return impl_->port(); }
int Operator::health_port() const { return impl_->health_port(); }
void Operator::Drain() { impl_->Drain(); }
void Operator::Stop() { impl_->Stop(); }

}  // namespace railhead::op
