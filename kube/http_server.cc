// SPDX-License-Identifier: Apache-2.0
//
// cpp-httplib speaks the protocol; the sockets, the threads, the deadlines and the budgets are
// ours. The library bounds each read, but neither a whole request nor the size of its headers; it
// gives each connection a thread for as long as it lasts, so that idle ones keep others waiting;
// and a failing accept ends it.
#include "kube/http_server.h"

#include <httplib.h>
#include <netdb.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "kube/http_connection.h"

namespace railhead::kube {
namespace {

constexpr size_t kMaxHeaderBytes = 64U << 10U;
constexpr int kBacklog = 256;
constexpr size_t kMaxConnections = 1024;  // more are turned away
constexpr absl::Duration kLinger = absl::Seconds(1);
constexpr absl::Duration kAcceptPause = absl::Milliseconds(20);

std::string ErrorText(int error) { return std::system_category().message(error); }

// A listening socket on a numeric address, or the reason why not.
absl::StatusOr<int> Listen(const std::string& address, int port) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) {
    return absl::InvalidArgumentError(absl::StrCat("\"", address, "\" is not an IP address"));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> info(found, freeaddrinfo);
  const int fd =
      socket(info->ai_family, info->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, info->ai_protocol);
  const int on = 1;
  const int off = 0;
  if (fd >= 0) {
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (info->ai_family == AF_INET6) {
      setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    }
    if (bind(fd, info->ai_addr, info->ai_addrlen) == 0 && listen(fd, kBacklog) == 0) return fd;
  }
  const int error = errno;
  if (fd >= 0) close(fd);
  return absl::UnavailableError(
      absl::StrCat("cannot listen on port ", port, ": ", ErrorText(error),
                   error == EADDRINUSE ? "; stop the other process or choose another port" : ""));
}

absl::StatusOr<int> ListenAnywhere(const HttpServerOptions& options) {
  if (!options.address.empty()) return Listen(options.address, options.port);
  absl::StatusOr<int> both = Listen("::", options.port);
  return both.ok() ? both : Listen("0.0.0.0", options.port);  // a machine without IPv6
}

int PortOf(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6*>(&address)->sin6_port
                   : reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
}

// The library's server, fed with our connections.
class Protocol final : public httplib::Server {
 public:
  Protocol(const HttpServerOptions& options, HttpHandler handler)
      : options_(options), handler_(std::move(handler)) {
    const Handler answer = [this](const httplib::Request& request, httplib::Response& response) {
      const HttpResponse made = handler_(
          {request.method, request.path, request.get_header_value("Content-Type"), request.body});
      response.status = made.status;
      response.set_content(made.body, made.content_type);
    };
    Get(".*", answer);
    Post(".*", answer);
    set_payload_max_length(options.max_body_bytes);
    set_pre_routing_handler([](const httplib::Request& request, httplib::Response& response) {
      if (!Refused(request)) return HandlerResponse::Unhandled;
      response.status = 415;
      response.set_header("Connection", "close");
      response.set_content("only bodies of type application/json without encoding are read\n",
                           "text/plain; charset=utf-8");
      return HandlerResponse::Handled;
    });
    set_exception_handler([](const httplib::Request& /*request*/, httplib::Response& response,
                             const std::exception_ptr& /*error*/) {
      response.status = 500;
      response.set_content("internal error\n", "text/plain; charset=utf-8");
    });
  }

  // Answers what the client has sent. True when it may send more, false when this was the last.
  bool Serve(Connection& connection, bool closing) {
    const absl::Time deadline = absl::Now() + options_.request_timeout;
    do {
      connection.BeginRequest(options_.max_body_bytes + kMaxHeaderBytes, deadline);
      bool refused = false;
      bool client_closes = false;
      const bool served =
          Process(*this, connection, closing, client_closes, [&refused](httplib::Request& request) {
            // The body of such a request stays in the socket.
            refused = Refused(request);
            // Answers are too small to be worth compressing.
            request.headers.erase("Accept-Encoding");
          });
      if (!served || refused || client_closes || closing || connection.finished()) return false;
    } while (connection.HasBuffered());
    return true;
  }

 private:
  // Calls process_request() of cpp-httplib, which since 0.18 wants the addresses of both ends as
  // well. A template, so that only the call that the installed version has is compiled.
  template <typename Server, typename Setup>
  static bool Process(Server& server, Connection& connection, bool closing, bool& client_closes,
                      const Setup& setup) {
    if constexpr (requires {
                    server.process_request(connection, "", 0, "", 0, closing, client_closes, setup);
                  }) {
      return server.process_request(connection, "", 0, "", 0, closing, client_closes, setup);
    } else {
      return server.process_request(connection, closing, client_closes, setup);
    }
  }

  // The library would unpack such bodies, to any size, before a handler sees them.
  static bool Refused(const httplib::Request& request) {
    const std::string type = request.get_header_value("Content-Type");
    return request.has_header("Content-Encoding") ||
           (!type.empty() && !absl::StartsWithIgnoreCase(type, "application/json"));
  }

  HttpServerOptions options_;
  HttpHandler handler_;
};

}  // namespace

// One thread accepts, and watches the connections that are waiting for their clients; a fixed
// number of threads answers those that have something to say. So a connection takes a thread only
// while a request is being read and answered, and none is ever closed to make room for another: the
// client could be sending on it at that very moment, and an API server does not repeat a webhook
// call.
class HttpServer::Impl {
 public:
  Impl(HttpServerOptions options, HttpHandler handler)
      : options_(std::move(options)), protocol_(options_, std::move(handler)) {}

  absl::Status Start() {
    absl::StatusOr<int> fd = ListenAnywhere(options_);
    if (!fd.ok()) return fd.status();
    listener_ = *fd;
    port_ = PortOf(listener_);
    wakeup_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (wakeup_ < 0) {
      close(listener_);
      return absl::UnavailableError(absl::StrCat("cannot make an eventfd: ", ErrorText(errno)));
    }
    threads_.emplace_back([this] { Watch(); });
    for (int i = 0; i < options_.threads; ++i) threads_.emplace_back([this] { Work(); });
    return absl::OkStatus();
  }

  int port() const { return port_; }

  void Stop() {
    if (threads_.empty()) return;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stopping_ = true;
    }
    work_.notify_all();
    WakeWatcher();
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
    const std::lock_guard<std::mutex> lock(mutex_);
    parked_.clear();
    close(wakeup_);
    close(listener_);
  }

 private:
  // A connection, and how long its client may take to say something.
  struct Waiting {
    std::unique_ptr<Connection> connection;
    absl::Time until;
    bool secured = false;  // the TLS handshake is over
  };

  void WakeWatcher() const {
    const uint64_t one = 1;
    // Fails only when the counter is full, and then the watcher is awake already.
    if (write(wakeup_, &one, sizeof(one)) < 0) return;
  }

  void Watch() {
    std::vector<Waiting> waiting;
    std::vector<pollfd> entries;
    while (Collect(waiting)) {
      const absl::Time now = absl::Now();
      absl::Time next = now + options_.idle_timeout;
      // The listener is left out when there is no room; the kernel keeps its queue meanwhile.
      entries.assign({{wakeup_, POLLIN, 0}, {now < accept_again_ ? -1 : listener_, POLLIN, 0}});
      if (now < accept_again_) next = std::min(next, accept_again_);
      for (const Waiting& entry : waiting) {
        entries.push_back({entry.connection->socket(), POLLIN, 0});
        next = std::min(next, entry.until);
      }
      poll(entries.data(), entries.size(), PollMilliseconds(next));
      if (entries[0].revents != 0) {
        uint64_t count = 0;
        if (read(wakeup_, &count, sizeof(count)) < 0) count = 0;
      }
      Dispatch(waiting, entries);
      if (entries[1].revents != 0) Accept(waiting);
    }
  }

  // Takes over the connections that the workers are done with for now. False when it is time to
  // end.
  bool Collect(std::vector<Waiting>& waiting) {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (Waiting& entry : parked_) waiting.push_back(std::move(entry));
    parked_.clear();
    return !stopping_;
  }

  // Hands the connections that have something to say to the workers, and drops those whose time is
  // up. `entries` holds what poll said of them, after the first two.
  void Dispatch(std::vector<Waiting>& waiting, const std::vector<pollfd>& entries) {
    const absl::Time now = absl::Now();
    size_t kept = 0;
    for (size_t i = 0; i < waiting.size(); ++i) {
      if (entries[i + 2].revents != 0) {
        const std::lock_guard<std::mutex> lock(mutex_);
        ready_.push_back(std::move(waiting[i]));
        work_.notify_one();
      } else if (now >= waiting[i].until) {
        waiting[i].connection.reset();
        --connections_;
      } else {
        if (kept != i) waiting[kept] = std::move(waiting[i]);
        ++kept;
      }
    }
    waiting.resize(kept);
  }

  void Accept(std::vector<Waiting>& waiting) {
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
      const bool no_room =
          errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS;
      if (no_room) accept_again_ = absl::Now() + kAcceptPause;
      return;
    }
    if (connections_ >= kMaxConnections) {
      close(fd);
      return;
    }
    ++connections_;
    Waiting entry;
    entry.connection = std::make_unique<Connection>(fd);
    entry.until = absl::Now() + options_.request_timeout;
    waiting.push_back(std::move(entry));
  }

  void Work() {
    for (;;) {
      Waiting entry;
      bool closing = false;
      {
        std::unique_lock<std::mutex> lock(mutex_);
        work_.wait(lock, [this] { return stopping_ || !ready_.empty(); });
        if (ready_.empty()) return;
        entry = std::move(ready_.front());
        ready_.pop_front();
        closing = stopping_;
      }
      if (!Advance(entry, closing)) {
        entry.connection.reset();
        --connections_;
        continue;
      }
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        parked_.push_back(std::move(entry));
      }
      WakeWatcher();
    }
  }

  // Does what the client's bytes allow. True when the connection goes on.
  bool Advance(Waiting& entry, bool closing) {
    Connection& connection = *entry.connection;
    if (options_.identity != nullptr && !entry.secured) {
      const std::shared_ptr<SSL_CTX> context = options_.identity->context();
      if (context == nullptr) return false;
      switch (connection.AdvanceTls(context.get(), entry.until)) {
        case Connection::Handshake::kFailed:
          return false;
        case Connection::Handshake::kWaits:
          return true;
        case Connection::Handshake::kDone:
          entry.secured = true;
          entry.until = absl::Now() + options_.request_timeout;
          break;
      }
      if (!connection.HasBuffered()) return true;
    }
    if (!protocol_.Serve(connection, closing)) {
      connection.Linger(absl::Now() + kLinger);
      return false;
    }
    entry.until = absl::Now() + options_.idle_timeout;
    return true;
  }

  const HttpServerOptions options_;
  Protocol protocol_;
  int listener_ = -1;
  int wakeup_ = -1;  // an eventfd: the watcher has something to collect
  int port_ = -1;
  std::vector<std::thread> threads_;
  absl::Time accept_again_ = absl::InfinitePast();  // used by the watcher alone
  std::atomic<size_t> connections_{0};
  std::mutex mutex_;              // guards all below
  std::condition_variable work_;  // there is something in ready_, or it is time to stop
  std::deque<Waiting> ready_;     // for the workers
  std::vector<Waiting> parked_;   // for the watcher
  bool stopping_ = false;
};

HttpServer::HttpServer(HttpServerOptions options, HttpHandler handler)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(handler))) {}
HttpServer::~HttpServer() { Stop(); }
absl::Status HttpServer::Start() { return impl_->Start(); }
int HttpServer::port() const { return impl_->port(); }
void HttpServer::Stop() { impl_->Stop(); }

}  // namespace railhead::kube
