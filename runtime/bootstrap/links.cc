// SPDX-License-Identifier: Apache-2.0
#include "runtime/bootstrap/links.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "runtime/base/now.h"
#include "runtime/net/socket.h"

namespace railhead::bootstrap {
namespace {

// Maximum bytes read from one connection before the others have their turn.
constexpr size_t kReadLimit = size_t{1} << 20;

}  // namespace

void Links::Add(int rank, net::Fd fd, FrameReader reader) {
  links_.insert_or_assign(rank, Link{std::move(fd), std::move(reader), SendQueue(), true, "", 0});
}

void Links::Queue(int rank, FrameKind kind, absl::string_view payload) {
  const auto link = links_.find(rank);
  if (link != links_.end()) link->second.queue.Add(EncodeFrame(kind, payload));
}

void Links::Collect(Node& node) {
  for (const Node::Outgoing& message : node.TakeOutgoing()) {
    Queue(message.to, message.kind, *message.payload);
  }
}

bool Links::Receive(int rank, Link& link, Node& node, bool readable) {
  absl::StatusOr<bool> open = true;
  if (readable) open = net::ReceiveSome(link.fd.get(), kReadLimit, link.reader.buffer());
  link.fresh = false;
  while (true) {
    absl::StatusOr<std::optional<Frame>> frame = link.reader.Next();
    if (!frame.ok()) return false;
    if (!frame->has_value()) break;
    if (link.met > 0 || (*frame)->kind == FrameKind::kMeet) ++link.met;
    if ((*frame)->kind == FrameKind::kMeet && link.meeting.empty()) {
      link.meeting = std::move((*frame)->payload);
      continue;
    }
    node.Receive(rank, (*frame)->kind, (*frame)->payload);
  }
  return open.ok() && *open;
}

void Links::Turn(Node& node, std::vector<pollfd>& others, absl::Time deadline) {
  Collect(node);
  std::vector<pollfd> entries = others;
  std::vector<int> ranks;
  for (auto& [rank, link] : links_) {
    link.queue.SendTo(link.fd.get());
    using Events = decltype(pollfd::events);
    entries.push_back(
        {link.fd.get(), static_cast<Events>(link.queue.empty() ? POLLIN : POLLIN | POLLOUT), 0});
    ranks.push_back(rank);
    if (link.fresh) deadline = absl::InfinitePast();
  }
  if (::poll(entries.data(), entries.size(), net::PollTimeout(deadline)) < 0) return;
  std::copy_n(entries.begin(), others.size(), others.begin());
  for (size_t i = 0; i < ranks.size(); ++i) {
    const auto found = links_.find(ranks[i]);
    const bool readable = (entries[others.size() + i].revents & ~POLLOUT) != 0;
    if (!readable && !found->second.fresh) continue;
    if (Receive(ranks[i], found->second, node, readable)) continue;
    links_.erase(found);
    node.Lost(ranks[i]);
  }
  Collect(node);
  for (auto& [rank, link] : links_) link.queue.SendTo(link.fd.get());
}

void Links::Flush(Node& node, absl::Time deadline) {
  Collect(node);
  while (true) {
    std::vector<pollfd> entries;
    for (auto& [rank, link] : links_) {
      link.queue.SendTo(link.fd.get());
      if (!link.queue.empty()) entries.push_back({link.fd.get(), POLLOUT, 0});
    }
    if (entries.empty() || MonotonicNow() >= deadline) return;
    ::poll(entries.data(), entries.size(), net::PollTimeout(deadline));
  }
}

std::vector<Links::Connection> Links::Release() && {
  std::vector<Connection> connections;
  connections.reserve(links_.size());
  for (auto& [rank, link] : links_) {
    connections.push_back({rank, std::move(link.fd), std::move(link.reader), std::move(link.queue),
                           std::move(link.meeting), link.met});
  }
  links_.clear();
  return connections;
}

void Links::Farewell(Node& node, absl::Time deadline) {
  Flush(node, deadline);
  for (const auto& [rank, link] : links_) ::shutdown(link.fd.get(), SHUT_WR);
  // Closing a socket with unread bytes resets it, and a reset may overtake the last messages: so
  // read until the ranks below, which have read them, close.
  for (const int rank : node.down()) {
    const auto link = links_.find(rank);
    if (link == links_.end()) continue;
    std::string ignored;
    while (net::WaitReadable(link->second.fd.get(), deadline).ok()) {
      const absl::StatusOr<bool> open =
          net::ReceiveSome(link->second.fd.get(), kReadLimit, &ignored);
      if (!open.ok() || !*open) break;
      ignored.clear();
    }
  }
  links_.clear();
}

}  // namespace railhead::bootstrap
