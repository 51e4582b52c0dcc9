// SPDX-License-Identifier: Apache-2.0
#include "runtime/bootstrap/tree_connections.h"

#include <poll.h>
#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>
#include <utility>

#include "runtime/base/now.h"
#include "runtime/base/one_per_process.h"
#include "runtime/base/random.h"
#include "runtime/bootstrap/messages.h"
#include "runtime/net/socket.h"

namespace railhead::bootstrap {
namespace {

// How much is read from one connection before the others have their turn.
constexpr size_t kReadLimit = size_t{1} << 20;

std::string NewName() { return RandomBytes(Multiplexer::kNameSize).value_or(""); }

}  // namespace

absl::StatusOr<std::shared_ptr<TreeConnections>> TreeConnections::Get() {
  static OnePerProcess<TreeConnections> connections;
  return connections.Get([]() -> absl::StatusOr<std::shared_ptr<TreeConnections>> {
    absl::StatusOr<std::shared_ptr<net::WatchThread>> thread = net::WatchThread::Get();
    if (!thread.ok()) return thread.status();
    net::Fd epoll(::epoll_create1(EPOLL_CLOEXEC));
    if (!epoll.valid()) return net::ErrnoError("epoll_create1", errno);
    epoll.KeepFromChildren();
    std::shared_ptr<TreeConnections> made(
        new TreeConnections(*std::move(thread), std::move(epoll), NewName()));
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.ptr = static_cast<net::WatchThread::Client*>(made.get());
    made->thread_->Wake(*made);
    if (::epoll_ctl(made->thread_->epoll(), EPOLL_CTL_ADD, made->epoll_.get(), &event) != 0) {
      return net::ErrnoError("epoll_ctl", errno);
    }
    return made;
  });
}

TreeConnections::TreeConnections(std::shared_ptr<net::WatchThread> thread, net::Fd epoll,
                                 std::string process)
    : thread_(std::move(thread)),
      epoll_(std::move(epoll)),
      multiplexer_(std::move(process), NewName) {}

TreeConnections::~TreeConnections() {
  stop_ = true;
  thread_->Wake(*this);
  thread_->AwaitEnd(*this);
}

absl::StatusOr<int> TreeConnections::Register(const net::Fd& fd) {
  const int number = ++last_number_;
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = static_cast<uint64_t>(number);
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd.get(), &event) == 0) return number;
  return net::ErrnoError("epoll_ctl", errno);
}

void TreeConnections::Unregister(const net::Fd& fd) {
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd.get(), nullptr);
}

Multiplexer::Channel TreeConnections::Open(int number, Links::Connection connection,
                                           net::WatchThread::Client& owner) {
  // A channel of a larger world may move here.
  connection.reader.set_limit(kAllLimit);
  Socket& socket =
      sockets_
          .emplace(number, Socket{std::move(connection.fd), std::move(connection.reader),
                                  std::move(connection.queue)})
          .first->second;
  unfinished_.insert(number);
  const Multiplexer::Channel channel = multiplexer_.Open(number);
  owners_[channel] = &owner;
  bool sound = true;
  if (!connection.meeting.empty()) {
    sound = multiplexer_.Receive(number, {FrameKind::kMeet, std::move(connection.meeting)});
  }
  if (sound && !Understand(number, socket)) Drop(number);
  Distribute();
  return channel;
}

void TreeConnections::Close(Multiplexer::Channel channel) {
  multiplexer_.Close(channel);
  owners_.erase(channel);
}

std::optional<absl::Time> TreeConnections::Turn() {
  std::array<epoll_event, 64> events;
  const int count = ::epoll_wait(epoll_.get(), events.data(), events.size(), 0);
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<size_t>(i)];
    const int number = static_cast<int>(event.data.u64);
    // Not opened yet, or dropped.
    const auto found = sockets_.find(number);
    if (found == sockets_.end()) continue;
    if ((event.events & ~EPOLLOUT) != 0 && !Read(number, found->second)) Drop(number);
  }
  Distribute();
  Send();
  if (!stop_) return absl::InfiniteFuture();
  while (!sockets_.empty()) Drop(sockets_.begin()->first);
  return std::nullopt;
}

bool TreeConnections::Read(int number, Socket& socket) {
  const absl::StatusOr<bool> open =
      net::ReceiveSome(socket.fd.get(), kReadLimit, socket.reader.buffer());
  return Understand(number, socket) && open.ok() && *open;
}

bool TreeConnections::Understand(int number, Socket& socket) {
  while (true) {
    absl::StatusOr<std::optional<Frame>> frame = socket.reader.Next();
    if (!frame.ok()) return false;
    if (!frame->has_value()) return true;
    if (!multiplexer_.Receive(number, **std::move(frame))) return false;
  }
}

void TreeConnections::Drop(int number) {
  const auto found = sockets_.find(number);
  if (found == sockets_.end()) return;
  Unregister(found->second.fd);
  sockets_.erase(found);
  multiplexer_.Lost(number);
}

void TreeConnections::Distribute() {
  for (const Multiplexer::Outgoing& message : multiplexer_.TakeOutgoing()) {
    const auto found = sockets_.find(message.to);
    if (found == sockets_.end()) continue;
    found->second.queue.Add(EncodeFrame(message.kind, message.payload));
    unfinished_.insert(message.to);
  }
  for (const int number : multiplexer_.TakeUnused()) {
    const auto found = sockets_.find(number);
    if (found == sockets_.end()) continue;
    found->second.unused = true;
    unfinished_.insert(number);
  }
  for (const Multiplexer::Channel channel : multiplexer_.TakeStirred()) {
    const auto owner = owners_.find(channel);
    if (owner != owners_.end()) thread_->Wake(*owner->second);
  }
}

void TreeConnections::Write(int number, Socket& socket) {
  socket.queue.SendTo(socket.fd.get());
  const bool for_room = !socket.queue.empty();
  if (for_room == socket.for_room) return;
  socket.for_room = for_room;
  epoll_event event{};
  event.events = for_room ? EPOLLIN | EPOLLOUT : EPOLLIN;
  event.data.u64 = static_cast<uint64_t>(number);
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, socket.fd.get(), &event);
}

void TreeConnections::Send() {
  Distribute();
  for (auto next = unfinished_.begin(); next != unfinished_.end();) {
    const int number = *next;
    const auto found = sockets_.find(number);
    if (found != sockets_.end()) Write(number, found->second);
    const bool sent = found == sockets_.end() || found->second.queue.empty();
    next = sent ? unfinished_.erase(next) : std::next(next);
    if (sent && found != sockets_.end() && found->second.unused) Drop(number);
  }
}

void TreeConnections::Flush(const std::vector<Multiplexer::Channel>& channels,
                            absl::Time deadline) {
  while (true) {
    Send();
    std::vector<pollfd> entries;
    for (const Multiplexer::Channel channel : channels) {
      for (const int number : multiplexer_.ConnectionsOf(channel)) {
        const auto found = sockets_.find(number);
        if (found == sockets_.end() || found->second.queue.empty()) continue;
        entries.push_back({found->second.fd.get(), POLLOUT, 0});
      }
    }
    if (entries.empty() || MonotonicNow() >= deadline) return;
    ::poll(entries.data(), entries.size(), net::PollTimeout(deadline));
  }
}

absl::StatusOr<TreeChannels> TreeChannels::Of(Links links) {
  absl::StatusOr<std::shared_ptr<TreeConnections>> connections = TreeConnections::Get();
  if (!connections.ok()) return connections.status();
  std::vector<Registered> registered;
  absl::Status failure;
  for (Links::Connection& connection : std::move(links).Release()) {
    const absl::StatusOr<int> number = (*connections)->Register(connection.fd);
    failure.Update(number.status());
    if (number.ok()) registered.push_back({*number, std::move(connection)});
  }
  if (failure.ok()) return TreeChannels(*std::move(connections), std::move(registered));
  for (const Registered& one : registered) (*connections)->Unregister(one.connection.fd);
  return failure;
}

void TreeChannels::Open(net::WatchThread::Client& owner) {
  for (Registered& one : std::exchange(registered_, {})) {
    const int rank = one.connection.rank;
    channels_[rank] = connections_->Open(one.number, std::move(one.connection), owner);
  }
}

void TreeChannels::Close() {
  for (const auto& [rank, channel] : channels_) connections_->Close(channel);
  channels_.clear();
  connections_->Send();
}

void TreeChannels::Deliver(Node& node) {
  for (auto next = channels_.begin(); next != channels_.end();) {
    const auto [rank, channel] = *next;
    // Before the frames, which come before the end.
    const bool ended = connections_->channels().Ended(channel);
    for (const Frame& frame : connections_->channels().Take(channel)) {
      node.Receive(rank, frame.kind, frame.payload);
    }
    if (!ended) {
      ++next;
      continue;
    }
    connections_->Close(channel);
    next = channels_.erase(next);
    node.Lost(rank);
  }
}

void TreeChannels::Flush(Node& node, absl::Time deadline) {
  for (const Node::Outgoing& message : node.TakeOutgoing()) {
    const auto found = channels_.find(message.to);
    if (found != channels_.end()) {
      connections_->channels().Send(found->second, message.kind, *message.payload);
    }
  }
  std::vector<Multiplexer::Channel> channels;
  channels.reserve(channels_.size());
  for (const auto& [rank, channel] : channels_) channels.push_back(channel);
  connections_->Flush(channels, deadline);
}

}  // namespace railhead::bootstrap
