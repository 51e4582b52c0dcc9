// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/cluster/status_server.h"

#include <httplib.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace railhead::device_plugin {

StatusServer::StatusServer() : server_(std::make_unique<httplib::Server>()) {}

absl::StatusOr<std::unique_ptr<StatusServer>> StatusServer::Start(const std::string& flag,
                                                                  const std::string& address,
                                                                  const Pages& pages) {
  const size_t colon = address.rfind(':');
  int port = -1;
  if (colon == std::string::npos || !absl::SimpleAtoi(address.substr(colon + 1), &port) ||
      port < 0 || port > 65535) {
    return absl::InvalidArgumentError(absl::StrCat(flag, " ", address, " is not host:port"));
  }
  std::string host = address.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  std::unique_ptr<StatusServer> self(new StatusServer());
  httplib::Server& server = *self->server_;
  // Who asks here asks one thing every few seconds; a slow client must not hold what another needs.
  server.new_task_queue = [] { return new httplib::ThreadPool(2); };
  // The library's own choice, SO_REUSEPORT, would share a port that is in use.
  server.set_socket_options([](socket_t sock) {
    const int yes = 1;
    setsockopt(sock, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    const int no = 0;  // "::" is IPv4 too, whatever the machine's default
    setsockopt(sock, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
  });
  server.set_keep_alive_max_count(1);
  server.set_read_timeout(2);
  server.set_write_timeout(2);
  server.set_payload_max_length(1024);
  for (const auto& [path, make] : pages) {
    server.Get(path, [make = make](const httplib::Request&, httplib::Response& response) {
      const StatusPage page = make();
      response.status = page.status;
      response.set_content(page.body, page.content_type);
    });
  }
  const auto bind = [&server, port](const std::string& to) {
    if (port == 0) return server.bind_to_any_port(to);
    return server.bind_to_port(to, port) ? port : -1;
  };
  self->port_ = bind(host.empty() ? "::" : host);
  // A machine without IPv6.
  if (self->port_ < 0 && host.empty()) self->port_ = bind("0.0.0.0");
  if (self->port_ < 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", flag, " ", address, "; is the port in use?"));
  }
  self->thread_ = std::thread([&server] { server.listen_after_bind(); });
  // stop() has no effect on a server that does not run yet.
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (!server.is_running()) {
    if (std::chrono::steady_clock::now() > give_up) {
      return absl::UnavailableError(absl::StrCat("the server on ", address, " does not start"));
    }
    std::this_thread::yield();
  }
  return self;
}

StatusServer::~StatusServer() {
  if (!thread_.joinable()) return;
  server_->stop();
  thread_.join();
}

}  // namespace railhead::device_plugin
