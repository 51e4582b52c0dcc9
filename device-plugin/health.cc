// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/health.h"

#include <httplib.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace railhead::device_plugin {
namespace {

constexpr std::chrono::seconds kLoopDeadline(60);
constexpr std::chrono::seconds kUnheardDeadline(120);

void Answer(const absl::Status& status, httplib::Response& response) {
  response.status = status.ok() ? 200 : 503;
  response.set_content(status.ok() ? std::string("ok\n") : absl::StrCat(status.message(), "\n"),
                       "text/plain");
}

}  // namespace

void Health::Report(const Beat& beat, TimePoint now) {
  const std::lock_guard<std::mutex> lock(mutex_);
  beat_ = beat;
  beat_at_ = now;
  const bool unheard = beat.has_devices && beat.kubelet && !beat.serving;
  if (!unheard) {
    unheard_since_.reset();
  } else if (!unheard_since_.has_value()) {
    unheard_since_ = now;
  }
}

absl::Status Health::Ready() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!beat_at_.has_value()) return absl::UnavailableError("starting");
  if (!beat_.has_devices || beat_.serving) return absl::OkStatus();
  return absl::UnavailableError(beat_.kubelet ? "kubelet holds no ListAndWatch stream of ours"
                                              : "kubelet.sock is not there");
}

absl::Status Health::Live(TimePoint now) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (beat_at_.has_value() && now - *beat_at_ > kLoopDeadline) {
    return absl::UnavailableError("the loop is stuck");
  }
  if (unheard_since_.has_value() && now - *unheard_since_ > kUnheardDeadline) {
    return absl::UnavailableError("kubelet has not taken our registration for two minutes");
  }
  return absl::OkStatus();
}

HealthServer::HealthServer() : server_(std::make_unique<httplib::Server>()) {}

absl::StatusOr<std::unique_ptr<HealthServer>> HealthServer::Start(const std::string& address,
                                                                  const Health& health) {
  const size_t colon = address.rfind(':');
  int port = -1;
  if (colon == std::string::npos || !absl::SimpleAtoi(address.substr(colon + 1), &port) ||
      port < 0 || port > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat("--health-address ", address, " is not host:port"));
  }
  std::string host = address.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  std::unique_ptr<HealthServer> self(new HealthServer());
  httplib::Server& server = *self->server_;
  // A probe asks one thing every few seconds; a slow client must not hold what a probe needs.
  server.new_task_queue = [] { return new httplib::ThreadPool(2); };
  // The library's own choice, SO_REUSEPORT, would share a port that is in use.
  server.set_socket_options([](socket_t sock) {
    const int yes = 1;
    setsockopt(sock, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  });
  server.set_keep_alive_max_count(1);
  server.set_read_timeout(2);
  server.set_write_timeout(2);
  server.set_payload_max_length(1024);
  server.Get("/healthz", [&health](const httplib::Request&, httplib::Response& response) {
    Answer(health.Live(std::chrono::steady_clock::now()), response);
  });
  server.Get("/readyz", [&health](const httplib::Request&, httplib::Response& response) {
    Answer(health.Ready(), response);
  });
  self->port_ = port == 0 ? server.bind_to_any_port(host.c_str()) : port;
  if (self->port_ < 0 || (port != 0 && !server.bind_to_port(host.c_str(), port))) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen on --health-address ", address, "; is the port in use?"));
  }
  self->thread_ = std::thread([&server] { server.listen_after_bind(); });
  // stop() has no effect on a server that does not run yet.
  const TimePoint give_up = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (!server.is_running()) {
    if (std::chrono::steady_clock::now() > give_up) {
      return absl::UnavailableError(absl::StrCat("the server on ", address, " does not start"));
    }
    std::this_thread::yield();
  }
  return self;
}

HealthServer::~HealthServer() {
  if (!thread_.joinable()) return;
  server_->stop();
  thread_.join();
}

}  // namespace railhead::device_plugin
