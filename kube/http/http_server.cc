// SPDX-License-Identifier: Apache-2.0
#include "kube/http/http_server.h"

#include <openssl/ssl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/file_descriptor.h"
#include "kube/http/http_clients.h"
#include "kube/http/http_connection.h"
#include "kube/http/http_fairness.h"
#include "kube/http/http_listener.h"
#include "kube/http/http_workers.h"
#include "kube/monotonic.h"

namespace railhead::kube {
namespace {

using State = HttpStanding::State;

constexpr size_t kPieceBytes = 16U << 10U;  // of one read
constexpr int kPiecesAtOnce = 4;            // then other connections have their turn
constexpr int kAcceptsAtOnce = 64;
constexpr absl::Duration kLinger = absl::Seconds(1);
constexpr absl::Duration kAcceptPause = absl::Milliseconds(20);
constexpr uint64_t kListenerId = 0;
constexpr uint64_t kWakeupId = 1;
constexpr uint64_t kFirstClientId = 2;

std::string ErrorText(int error) { return std::system_category().message(error); }

}  // namespace

class HttpServer::Impl {
 public:
  Impl(HttpServerOptions options, HttpHandler handler)
      : options_(std::move(options)),
        clients_({.connections = options_.max_connections,
                  .connections_of_source = options_.max_connections_of_source,
                  .bytes = options_.max_bytes,
                  .body_bytes = options_.max_body_bytes},
                 kFirstClientId),
        free_threads_(options_.threads),
        workers_(std::move(handler), [this] { Wake(); }) {
    std::signal(SIGPIPE, SIG_IGN);  // NOLINT(cert-err33-c): it cannot fail
  }

  absl::Status Start() {
    absl::StatusOr<FileDescriptor> fd = Listen(options_.address, options_.port);
    if (!fd.ok()) return fd.status();
    listener_ = *std::move(fd);
    port_ = PortOf(listener_);
    wakeup_ = FileDescriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    epoll_ = FileDescriptor(epoll_create1(EPOLL_CLOEXEC));
    if (!wakeup_.valid() || !epoll_.valid() ||
        !Watch(EPOLL_CTL_ADD, wakeup_.get(), EPOLLIN, kWakeupId) ||
        !Watch(EPOLL_CTL_ADD, listener_.get(), EPOLLIN, kListenerId)) {
      return absl::UnavailableError(
          absl::StrCat("cannot watch port ", port_, ": ", ErrorText(errno)));
    }
    workers_.Start(options_.threads, !options_.probe_paths.empty());
    thread_ = std::thread([this] { Loop(); });
    return absl::OkStatus();
  }

  int port() const { return port_; }

  void Stop() {
    if (!thread_.joinable()) return;
    stopping_ = true;
    Wake();
    thread_.join();
    workers_.End();
    for (FileDescriptor* fd : {&listener_, &wakeup_, &epoll_}) fd->Close();
  }

 private:
  void Wake() const {
    const uint64_t one = 1;
    // Fails only when the counter is full, and then the I/O thread is awake already.
    if (write(wakeup_.get(), &one, sizeof(one)) < 0) return;
  }

  bool Watch(int operation, int fd, uint32_t events, uint64_t id) const {
    epoll_event event{};
    event.events = events;
    event.data.u64 = id;
    return epoll_ctl(epoll_.get(), operation, fd, &event) == 0;
  }

  // ---- The I/O thread: all below.

  void Loop() {
    std::vector<epoll_event> events(256);
    now_ = MonotonicNow();
    for (;;) {
      if (stopping_ && !closing_) BeginToClose();
      if (closing_ && clients_.all().empty() && in_hand_ == 0) break;
      const int count =
          epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), Milliseconds());
      now_ = MonotonicNow();
      bool accepts = false;
      for (int i = 0; i < count; ++i) {
        const epoll_event& event = events[static_cast<size_t>(i)];
        if (event.data.u64 == kListenerId) {
          accepts = true;
        } else if (event.data.u64 == kWakeupId) {
          uint64_t ignored = 0;
          if (read(wakeup_.get(), &ignored, sizeof(ignored)) < 0) ignored = 0;
        } else if (HttpClient* client = clients_.Find(event.data.u64); client != nullptr) {
          OnEvent(*client, event.events);
        }
      }
      GoOn();
      TakeAnswers();
      if (accepts && !closing_) Accept();
      Expire();
      Dispatch();
      clients_.RemoveClosed();
    }
  }

  // Until something is due.
  int Milliseconds() {
    if (!going_on_.empty()) return 0;
    absl::Time next = now_ + options_.idle_timeout;
    if (accept_again_ > now_) next = std::min(next, accept_again_);
    for (const auto& [id, client] : clients_.all()) next = std::min(next, client->deadline);
    const absl::Duration left = std::max(next - MonotonicNow(), absl::ZeroDuration());
    return static_cast<int>(absl::ToInt64Milliseconds(absl::Ceil(left, absl::Milliseconds(1))));
  }

  void BeginToClose() {
    closing_ = true;
    Watch(EPOLL_CTL_DEL, listener_.get(), 0, kListenerId);
    listener_.Close();
    for (const auto& [id, client] : clients_.all()) {
      const State state = client->standing.state;
      if (state == State::kSilent || state == State::kIdle) clients_.Close(*client);
      client->closes = true;
    }
    clients_.RemoveClosed();
  }

  void Accept() {
    for (int i = 0; i < kAcceptsAtOnce; ++i) {
      sockaddr_storage address{};
      socklen_t size = sizeof(address);
      FileDescriptor fd(accept4(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size,
                                SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!fd.valid()) {
        if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
          // Others of this process need descriptors, too.
          if (!clients_.GiveUpOne(now_)) PauseAccepting();
        }
        return;
      }
      Admit(std::move(fd), SourceOf(reinterpret_cast<const sockaddr&>(address)));
    }
  }

  // A listener that stays readable would wake us all the time.
  void PauseAccepting() {
    Watch(EPOLL_CTL_MOD, listener_.get(), 0, kListenerId);
    accept_again_ = now_ + kAcceptPause;
  }

  void Admit(FileDescriptor fd, const std::string& source) {
    HttpClient* client = clients_.Add(std::move(fd), source, now_);
    if (client == nullptr) return;
    client->deadline = now_ + options_.head_timeout;
    client->secured = options_.identity == nullptr;
    client->interest = EPOLLIN;
    if (!Watch(EPOLL_CTL_ADD, client->connection->fd(), EPOLLIN, client->id)) {
      clients_.Close(*client);
    }
  }

  // Gives up what is slowest until the rest fits, or only small requests are left.
  void FreeMemory() {
    while (clients_.IsFull()) {
      HttpClient* client = clients_.Slowest(now_);
      if (client == nullptr) return;
      const State state = client->standing.state;
      if (state == State::kSending || state == State::kQueued) {
        Refuse(*client, 503, "too much data in requests; retry later");
        if (client->standing.bytes < options_.max_bytes) continue;
      }
      clients_.Close(*client);
    }
  }

  // ---- One connection.

  void SetState(HttpClient& client, State state, absl::Time deadline) const {
    client.standing.state = state;
    client.standing.since = now_;
    client.deadline = deadline;
  }

  void OnEvent(HttpClient& client, uint32_t events) {
    const State state = client.standing.state;
    if (state == State::kQueued || state == State::kInHand) {
      // Nothing else was requested from epoll, so the client has gone.
      if ((events & (EPOLLHUP | EPOLLERR)) != 0) clients_.Close(client);
      return;
    }
    Advance(client);
  }

  void GoOn() {
    std::vector<uint64_t> ids;
    ids.swap(going_on_);
    for (const uint64_t id : ids) {
      HttpClient* client = clients_.Find(id);
      if (client == nullptr) continue;
      client->has_more = false;
      Advance(*client);
    }
  }

  void GoOnLater(HttpClient& client) {
    if (std::exchange(client.has_more, true)) return;
    going_on_.push_back(client.id);
  }

  // Does what the client's bytes allow.
  void Advance(HttpClient& client) {
    client.blocked_on_read = false;
    client.blocked_on_write = false;
    if (!client.secured && !AdvanceTls(client)) {
      SetInterest(client);
      return;
    }
    switch (client.standing.state) {
      case State::kSilent:
      case State::kSending:
      case State::kIdle:
        Receive(client);
        break;
      case State::kAnswering:
        Send(client);
        break;
      case State::kClosing:
        Drain(client);
        break;
      case State::kQueued:
      case State::kInHand:
        break;
    }
    SetInterest(client);
  }

  bool AdvanceTls(HttpClient& client) {
    const std::shared_ptr<SSL_CTX> context = options_.identity->context();
    const Connection::Io io =
        context == nullptr ? Connection::Io::kEnded : client.connection->AdvanceTls(context.get());
    if (io == Connection::Io::kDone) {
      client.secured = true;
      client.deadline = now_ + options_.head_timeout;
      return true;
    }
    if (!NoteBlocked(client, io)) clients_.Close(client);
    return false;
  }

  // False when the connection has ended.
  static bool NoteBlocked(HttpClient& client, Connection::Io io) {
    client.blocked_on_read = io == Connection::Io::kWantsRead;
    client.blocked_on_write = io == Connection::Io::kWantsWrite;
    return io != Connection::Io::kEnded;
  }

  void SetInterest(HttpClient& client) {
    if (client.connection == nullptr) return;
    uint32_t interest = 0;
    switch (client.standing.state) {
      case State::kQueued:
      case State::kInHand:
        break;
      case State::kAnswering:
        interest = client.blocked_on_read ? EPOLLIN : EPOLLOUT;
        break;
      default:
        interest = client.blocked_on_write ? EPOLLOUT : EPOLLIN;
        break;
    }
    if (interest == client.interest) return;
    if (!Watch(EPOLL_CTL_MOD, client.connection->fd(), interest, client.id)) {
      clients_.Close(client);
      return;
    }
    client.interest = interest;
  }

  void Receive(HttpClient& client) {
    for (int i = 0; i < kPiecesAtOnce; ++i) {
      if (client.pending.empty()) {
        const Connection::Result read = client.connection->Read(piece_, sizeof(piece_));
        if (read.io != Connection::Io::kDone) {
          if (!NoteBlocked(client, read.io)) clients_.Close(client);
          return;
        }
        Feed(client, {piece_, read.bytes});
      } else {
        const std::string pending = std::exchange(client.pending, std::string());
        Feed(client, pending);
      }
      const State state = client.standing.state;
      if (client.connection == nullptr || state == State::kQueued || state == State::kAnswering ||
          state == State::kClosing) {
        return;
      }
    }
    GoOnLater(client);
  }

  void Feed(HttpClient& client, absl::string_view bytes) {
    using ReaderState = HttpRequestReader::State;
    HttpRequestReader& reader = client.reader;
    const bool had_begun = reader.begun();
    const bool had_head = reader.state() != ReaderState::kHead;
    const size_t taken = reader.Take(bytes);
    if (taken < bytes.size()) client.pending.assign(bytes.data() + taken, bytes.size() - taken);
    if (!had_begun && reader.begun()) {
      SetState(client, State::kSending, now_ + options_.head_timeout);
    }
    if (!had_head && reader.state() == ReaderState::kBody) {
      client.deadline = now_ + options_.body_timeout;
      if (reader.wants_continue()) {
        // Nothing else is under way, so it fits into the socket, or the socket is dead.
        client.connection->Write("HTTP/1.1 100 Continue\r\n\r\n");
      }
    }
    if (reader.state() == ReaderState::kRefused) {
      Refuse(client, reader.refusal(), reader.reason());
      return;
    }
    if (reader.state() == ReaderState::kDone) {
      client.closes = client.closes || !reader.keeps_connection();
      SetState(client, State::kQueued, now_ + options_.body_timeout);
    }
    clients_.Account(client);
    FreeMemory();
  }

  // Answers without a handler, and ends the connection.
  void Refuse(HttpClient& client, int status, absl::string_view text) {
    client.closes = true;
    Answer(client, PlainResponse(status, text), true);
  }

  void Answer(HttpClient& client, const HttpResponse& response, bool with_body) {
    client.reader.Reset();
    if (client.closes) std::string().swap(client.pending);
    client.out = EncodeResponse(response, with_body, client.closes);
    client.out_sent = 0;
    SetState(client, State::kAnswering, now_ + options_.answer_timeout);
    clients_.Account(client);
    Send(client);
    SetInterest(client);
  }

  void Send(HttpClient& client) {
    while (client.out_sent < client.out.size()) {
      const Connection::Result written =
          client.connection->Write(absl::string_view(client.out).substr(client.out_sent));
      if (written.io != Connection::Io::kDone) {
        if (!NoteBlocked(client, written.io)) clients_.Close(client);
        return;
      }
      client.out_sent += written.bytes;
    }
    std::string().swap(client.out);
    clients_.Account(client);
    if (client.closes) {
      client.connection->EndWriting();
      SetState(client, State::kClosing, now_ + kLinger);
      return;
    }
    SetState(client, State::kIdle, now_ + options_.idle_timeout);
    if (!client.pending.empty() || client.connection->HasBuffered()) GoOnLater(client);
  }

  // Takes what still comes, for the client would lose the answer if its bytes met a closed socket.
  void Drain(HttpClient& client) {
    for (int i = 0; i < kPiecesAtOnce; ++i) {
      const Connection::Result read = client.connection->Read(piece_, sizeof(piece_));
      if (read.io != Connection::Io::kDone) {
        if (!NoteBlocked(client, read.io)) clients_.Close(client);
        return;
      }
    }
    GoOnLater(client);
  }

  void Expire() {
    if (accept_again_ != absl::InfinitePast() && now_ >= accept_again_ && !closing_) {
      accept_again_ = absl::InfinitePast();
      Watch(EPOLL_CTL_MOD, listener_.get(), EPOLLIN, kListenerId);
    }
    for (const auto& [id, client] : clients_.all()) {
      if (client->connection == nullptr || now_ < client->deadline) continue;
      switch (client->standing.state) {
        case State::kSending:
          Refuse(*client, 408, "the request was not complete in time");
          break;
        case State::kQueued:
          Refuse(*client, 503, "too many requests in progress; retry later");
          break;
        default:
          clients_.Close(*client);
          break;
      }
    }
  }

  // ---- To and from handlers.

  void Dispatch() {
    std::vector<HttpClient*> queued;
    std::vector<HttpClient*> probes;
    for (const auto& [id, client] : clients_.all()) {
      if (client->connection == nullptr || client->standing.state != State::kQueued) continue;
      (IsProbe(*client) ? probes : queued).push_back(client.get());
    }
    while (free_threads_ > 0 && !queued.empty()) {
      HttpClient& next = TakeNext(queued);
      // Handlers may wait for memory with a large request; small ones keep half of the threads.
      if (!IsLarge(next) || large_in_hand_ < (options_.threads + 1) / 2) Give(next, false);
    }
    while (!probe_in_hand_ && !probes.empty()) Give(TakeNext(probes), true);
  }

  bool IsLarge(const HttpClient& client) const {
    return client.reader.request().body.size() > clients_.Share();
  }

  bool IsProbe(const HttpClient& client) const {
    return options_.probe_paths.contains(client.reader.request().path);
  }

  static HttpClient& TakeNext(std::vector<HttpClient*>& queued) {
    const auto at = queued.begin() + static_cast<std::ptrdiff_t>(WhoIsNext(StandingsOf(queued)));
    HttpClient& next = **at;
    queued.erase(at);
    return next;
  }

  void Give(HttpClient& client, bool is_probe) {
    HttpTask task;
    task.client = client.id;
    task.source = client.source;
    task.is_probe = is_probe;
    task.is_large = !is_probe && IsLarge(client);
    task.with_body = !client.reader.is_head();
    task.request = client.reader.Release();
    task.bytes = task.request.body.capacity();
    SetState(client, State::kInHand, absl::InfiniteFuture());
    clients_.Account(client);
    clients_.Hold(*client.source, task.bytes);
    ++in_hand_;
    large_in_hand_ += task.is_large ? 1 : 0;
    (is_probe ? probe_in_hand_ : free_threads_) += is_probe ? 1 : -1;
    workers_.Give(std::move(task));
  }

  void TakeAnswers() {
    for (const HttpTask& task : workers_.TakeDone()) {
      (task.is_probe ? probe_in_hand_ : free_threads_) += task.is_probe ? -1 : 1;
      --in_hand_;
      large_in_hand_ -= task.is_large ? 1 : 0;
      clients_.Release(*task.source, task.bytes);
      HttpClient* client = clients_.Find(task.client);
      if (client == nullptr) continue;  // it has gone
      client->standing.answered = true;
      Answer(*client, task.response, task.with_body);
    }
    FreeMemory();
  }

  const HttpServerOptions options_;
  FileDescriptor listener_;
  FileDescriptor wakeup_;  // an eventfd: there are answers, or it is time to stop
  FileDescriptor epoll_;
  int port_ = -1;
  std::atomic<bool> stopping_ = false;

  // Used by the I/O thread alone.
  absl::Time now_;
  absl::Time accept_again_ = absl::InfinitePast();
  bool closing_ = false;
  HttpClients clients_;
  std::vector<uint64_t> going_on_;  // clients with more to process
  int in_hand_ = 0;
  int large_in_hand_ = 0;
  int free_threads_ = 0;
  int probe_in_hand_ = 0;
  char piece_[kPieceBytes];

  // Last: their threads use what is above.
  HttpWorkers workers_;
  std::thread thread_;  // the I/O thread
};

HttpServer::HttpServer(HttpServerOptions options, HttpHandler handler)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(handler))) {}
HttpServer::~HttpServer() { Stop(); }
absl::Status HttpServer::Start() { return impl_->Start(); }
int HttpServer::port() const { return impl_->port(); }
void HttpServer::Stop() { impl_->Stop(); }

}  // namespace railhead::kube
