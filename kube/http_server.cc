// SPDX-License-Identifier: Apache-2.0
//
// cpp-httplib speaks the protocol; the sockets, the threads, the deadlines and the budgets are
// ours. The library bounds each read, but neither a whole request nor the size of its headers; a
// connection that idles in its thread pool keeps others waiting; and a failing accept ends it.
#include "kube/http_server.h"

#include <httplib.h>
#include <netdb.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <deque>
#include <exception>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "kube/http_connection.h"

namespace railhead::kube {
namespace {

constexpr size_t kMaxHeaderBytes = 64U << 10U;
constexpr int kBacklog = 256;
constexpr size_t kMaxWaiting = 1024;  // accepted sockets without a thread; more are turned away
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

  // Answers the requests of one connection until it ends.
  void Serve(Connection& connection, const Wakeup& wakeup, const std::atomic<bool>& closing) {
    if (options_.identity != nullptr) {
      const std::shared_ptr<SSL_CTX> context = options_.identity->context();
      if (context == nullptr ||
          !connection.AcceptTls(context.get(), absl::Now() + options_.request_timeout)) {
        return;
      }
    }
    bool last = false;
    absl::Time idle_until = absl::Now() + options_.request_timeout;
    while (!last && !closing && connection.AwaitRequest(wakeup, idle_until)) {
      connection.BeginRequest(options_.max_body_bytes + kMaxHeaderBytes,
                              absl::Now() + options_.request_timeout);
      bool client_closes = false;
      const bool served = process_request(connection, /*close_connection=*/closing, client_closes,
                                          [&last](httplib::Request& request) {
                                            // After a refusal the body is still in the socket.
                                            last = Refused(request);
                                            // Answers are too small to be worth compressing.
                                            request.headers.erase("Accept-Encoding");
                                          });
      last = last || !served || client_closes || connection.broken();
      idle_until = absl::Now() + options_.idle_timeout;
    }
  }

 private:
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

// One thread accepts; a fixed number of threads serve one connection each. When a socket finds no
// free thread, one idle connection is asked to give up its own.
class HttpServer::Impl {
 public:
  Impl(HttpServerOptions options, HttpHandler handler)
      : options_(std::move(options)), protocol_(options_, std::move(handler)) {}

  absl::Status Start() {
    absl::StatusOr<int> fd = ListenAnywhere(options_);
    if (!fd.ok()) return fd.status();
    listener_ = *fd;
    port_ = PortOf(listener_);
    threads_.emplace_back([this] { AcceptAll(); });
    for (int i = 0; i < options_.threads; ++i) threads_.emplace_back([this] { Work(); });
    return absl::OkStatus();
  }

  int port() const { return port_; }

  void Stop() {
    if (threads_.empty()) return;
    closing_ = true;
    {
      const absl::MutexLock lock(&mutex_);
      stopping_ = true;
    }
    stop_accepting_.Call(1);
    idle_.Call(1U << 20U);  // more than there are threads
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
    const absl::MutexLock lock(&mutex_);
    for (const int fd : waiting_) close(fd);
    waiting_.clear();
    close(listener_);
  }

 private:
  void AcceptAll() {
    for (;;) {
      pollfd entries[2] = {{listener_, POLLIN, 0}, {stop_accepting_.fd(), POLLIN, 0}};
      poll(entries, 2, -1);
      if (entries[1].revents != 0) return;
      const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
      if (fd >= 0) {
        Enqueue(fd);
      } else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
        absl::SleepFor(kAcceptPause);  // the socket stays in the backlog until there is room
      }
    }
  }

  void Enqueue(int fd) {
    bool all_busy = false;
    {
      const absl::MutexLock lock(&mutex_);
      if (waiting_.size() >= kMaxWaiting) {
        close(fd);
        return;
      }
      waiting_.push_back(fd);
      all_busy = waiting_.size() > free_threads_;
    }
    if (all_busy) idle_.Call(1);
  }

  void Work() {
    for (;;) {
      int fd = -1;
      {
        const absl::MutexLock lock(&mutex_);
        ++free_threads_;
        mutex_.Await(absl::Condition(this, &Impl::HasWork));
        --free_threads_;
        if (stopping_) return;
        fd = waiting_.front();
        waiting_.pop_front();
      }
      Connection connection(fd);
      protocol_.Serve(connection, idle_, closing_);
    }
  }

  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopping_ || !waiting_.empty();
  }

  const HttpServerOptions options_;
  Protocol protocol_;
  Wakeup stop_accepting_;
  Wakeup idle_;
  int listener_ = -1;
  int port_ = -1;
  std::vector<std::thread> threads_;
  std::atomic<bool> closing_{false};  // what stopping_ says, for threads inside a connection
  absl::Mutex mutex_;
  std::deque<int> waiting_ ABSL_GUARDED_BY(mutex_);
  size_t free_threads_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
};

HttpServer::HttpServer(HttpServerOptions options, HttpHandler handler)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(handler))) {}
HttpServer::~HttpServer() { Stop(); }
absl::Status HttpServer::Start() { return impl_->Start(); }
int HttpServer::port() const { return impl_->port(); }
void HttpServer::Stop() { impl_->Stop(); }

}  // namespace railhead::kube
