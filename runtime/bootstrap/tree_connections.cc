// SPDX-License-Identifier: Apache-2.0
#include "runtime/bootstrap/tree_connections.h"

#include <linux/sockios.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/now.h"
#include "runtime/base/one_per_process.h"
#include "runtime/base/random.h"
#include "runtime/bootstrap/messages.h"
#include "runtime/net/socket.h"

namespace railhead::bootstrap {
namespace {

// Maximum bytes read from one connection before the others have their turn.
constexpr size_t kReadLimit = size_t{1} << 20;

// The listening socket's number; connections and pending clients have others.
constexpr int kListener = 0;

// Processes that have connected to come back, and have not proved who they are.
constexpr size_t kMostVisitors = 64;
constexpr absl::Duration kVisit = absl::Seconds(10);

// Interval of checking the rails for peers that are away.
constexpr absl::Duration kAwayPause = absl::Milliseconds(200);

// A process closes a connection as soon as it reads its end. One that does not, although its kernel
// has acknowledged everything, is stopped or busy, and reads it later.
constexpr absl::Duration kReaction = absl::Seconds(1);
// An unused connection on which the last bytes are not acknowledged for this time is dialed anew.
constexpr absl::Duration kLateAcknowledgement = absl::Seconds(2);
// Interval of checking such connections.
constexpr absl::Duration kPartingPause = absl::Milliseconds(200);

// Returns true if the peer's kernel has acknowledged everything that was sent, and the end.
bool HasAcknowledgedAll(const net::Fd& fd) {
  int waiting = 0;
  return ::ioctl(fd.get(), SIOCOUTQ, &waiting) == 0 && waiting == 0;
}

std::string NewName() { return RandomBytes(Multiplexer::kNameSize).value_or(""); }

// The name of a connection whose socket is lost: `host` is the half of the process that is dialed.
std::string NameOf(absl::string_view host, absl::string_view guest) {
  return absl::StrCat(host, guest);
}
Secret SecretFor(const Secret& secret, absl::string_view name) {
  return secret.ForSession(absl::StrCat("railhead tree connection ", name));
}

void OnFailure(Absence& absence, const absl::Status& why, absl::Time now) {
  if (absl::IsNotFound(why)) {
    absence.Refused(now);
  } else {
    absence.Failed(now);
  }
}

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
    made->Listen();
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

void TreeConnections::Listen() {
  absl::StatusOr<net::Fd> listener = net::Listen(std::nullopt, 0);
  if (!listener.ok()) return;
  listener->KeepFromChildren();
  const absl::StatusOr<net::SocketAddress> bound = net::LocalAddress(listener->get());
  if (!bound.ok() || !Watch(listener->get(), kListener, EPOLLIN | EPOLLET).ok()) return;
  listener_ = *std::move(listener);
  port_ = bound->port;
}

absl::Status TreeConnections::Watch(int fd, int number, uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = static_cast<uint64_t>(number);
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0) return absl::OkStatus();
  return net::ErrnoError("epoll_ctl", errno);
}

absl::Status TreeConnections::WatchOnce(int fd, uint32_t events) {
  return Watch(fd, ++last_number_, events | EPOLLET);
}

absl::StatusOr<int> TreeConnections::Register(const net::Fd& fd) {
  const int number = ++last_number_;
  if (absl::Status watched = Watch(fd.get(), number, EPOLLIN); !watched.ok()) return watched;
  return number;
}

void TreeConnections::Unregister(const net::Fd& fd) {
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd.get(), nullptr);
}

Multiplexer::Channel TreeConnections::Open(int number, Links::Connection connection, Terms terms,
                                           Owner owner) {
  // A channel of a larger world may move here.
  connection.reader.set_limit(kAllLimit);
  net::TestWhenIdle(connection.fd.get(), terms.limits.idle, terms.limits.interval);
  std::string place;
  const absl::StatusOr<net::SocketAddress> local = net::LocalAddress(connection.fd.get());
  if (local.ok() && listener_.valid()) place = EncodePlace({{local->address, port_}});
  Line& line = lines_[number];
  line.fd = std::move(connection.fd);
  line.reader = std::move(connection.reader);
  line.queue = std::move(connection.queue);
  line.terms = std::move(terms);
  line.session = Session(connection.met);
  unfinished_.insert(number);
  next_look_ = absl::InfinitePast();
  const Multiplexer::Channel channel = multiplexer_.Open(number, place);
  owners_[channel] = std::move(owner);
  bool sound = true;
  if (!connection.meeting.empty()) {
    sound = multiplexer_.Receive(number, {FrameKind::kMeet, std::move(connection.meeting)});
  }
  if (sound && !Understand(number, line)) Drop(number);
  Distribute();
  thread_->Wake(*this);
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
    // Not opened yet, dropped, or a client that has not proved its identity.
    const auto found = lines_.find(number);
    if (found == lines_.end() || !found->second.fd.valid()) continue;
    if ((event.events & ~EPOLLOUT) != 0) React(number, Read(number, found->second));
  }
  const absl::Time now = MonotonicNow();
  ServeVisitors(now);
  LookForSilence(now);
  absl::Time next = std::min(Restore(now), lines_.empty() ? absl::InfiniteFuture() : next_look_);
  for (const ReturnVisitor& visitor : visitors_) next = std::min(next, visitor.deadline());
  Distribute();
  Send();
  if (stop_ && !stopped_.has_value()) stopped_ = now;
  next = std::min(next, Part(now));
  if (stop_ && lines_.empty()) return std::nullopt;
  return next;
}

TreeConnections::Stream TreeConnections::Read(int number, Line& line) {
  const absl::StatusOr<bool> open =
      net::ReceiveSome(line.fd.get(), kReadLimit, line.reader.buffer());
  if (!Understand(number, line)) return Stream::kViolated;
  if (!open.ok()) return Stream::kBroken;
  return *open ? Stream::kOpen : Stream::kClosed;
}

void TreeConnections::React(int number, Stream stream) {
  switch (stream) {
    case Stream::kOpen:
      break;
    case Stream::kBroken:
      Break(number);
      break;
    case Stream::kClosed:
    case Stream::kViolated:
      Drop(number);
      break;
  }
}

bool TreeConnections::Understand(int number, Line& line) {
  while (true) {
    absl::StatusOr<std::optional<Frame>> frame = line.reader.Next();
    if (!frame.ok()) return false;
    if (!frame->has_value()) break;
    const absl::StatusOr<bool> for_user = line.session.Receive(**frame);
    if (!for_user.ok()) return false;
    if (*for_user && !multiplexer_.Receive(number, **std::move(frame))) return false;
  }
  if (!line.meeting.has_value()) line.meeting = multiplexer_.MeetingOf(number);
  if (line.unused.has_value()) return true;  // its peer needs no more reports
  if (const std::string report = line.session.TakeReport(); !report.empty()) {
    line.queue.Add(report);
    unfinished_.insert(number);
  }
  return true;
}

void TreeConnections::Drop(int number) {
  const auto found = lines_.find(number);
  if (found == lines_.end()) return;
  if (found->second.fd.valid()) Unregister(found->second.fd);
  lines_.erase(found);
  multiplexer_.Lost(number);
}

void TreeConnections::Finish(Line& line, absl::Time now) {
  if (line.finished.has_value()) return;
  line.finished = now;
  ::shutdown(line.fd.get(), SHUT_WR);
  thread_->Wake(*this, now + kPartingPause);
}

absl::Time TreeConnections::Part(absl::Time now) {
  absl::Time next = absl::InfiniteFuture();
  std::vector<int> ended;
  std::vector<int> late;
  for (const auto& [number, line] : lines_) {
    const SilenceLimits& limits = line.terms.limits;
    absl::Time until = absl::InfiniteFuture();
    if (line.unused.has_value()) until = *line.unused + limits.gone;
    if (stopped_.has_value()) until = std::min(until, *stopped_ + limits.farewell);
    const bool finished = line.fd.valid() && line.finished.has_value();
    const absl::Duration waited = finished ? now - *line.finished : absl::ZeroDuration();
    if (now >= until || (waited >= kReaction && HasAcknowledgedAll(line.fd))) {
      ended.push_back(number);
    } else if (waited >= kLateAcknowledgement &&
               net::SilenceOf(line.fd.get()) >= kLateAcknowledgement) {
      late.push_back(number);
    }
    next = std::min(next, finished ? std::min(until, now + kPartingPause) : until);
  }
  for (const int number : ended) Drop(number);
  for (const int number : late) Break(number);
  return next;
}

void TreeConnections::Distribute() {
  for (const Multiplexer::Outgoing& message : multiplexer_.TakeOutgoing()) {
    const auto found = lines_.find(message.to);
    if (found == lines_.end()) continue;
    Line& line = found->second;
    const absl::string_view bytes = line.session.Add(message.kind, message.payload);
    if (!line.fd.valid()) continue;
    line.queue.Add(bytes);
    unfinished_.insert(message.to);
  }
  for (const int number : multiplexer_.TakeUnused()) {
    const auto found = lines_.find(number);
    if (found == lines_.end()) continue;
    found->second.unused = MonotonicNow();
    unfinished_.insert(number);
  }
  for (const Multiplexer::Channel channel : multiplexer_.TakeStirred()) {
    const auto owner = owners_.find(channel);
    if (owner != owners_.end()) thread_->Wake(*owner->second.client);
  }
}

void TreeConnections::Write(int number, Line& line) {
  if (const int error = line.queue.SendTo(line.fd.get()); error != 0 && error != EPIPE) {
    // First what arrived before the error: the peer may have left.
    if (Read(number, line) == Stream::kViolated) {
      Drop(number);
    } else {
      Break(number);
    }
    return;
  }
  const bool for_room = !line.queue.empty();
  if (for_room == line.for_room) return;
  line.for_room = for_room;
  epoll_event event{};
  event.events = for_room ? EPOLLIN | EPOLLOUT : EPOLLIN;
  event.data.u64 = static_cast<uint64_t>(number);
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, line.fd.get(), &event);
}

void TreeConnections::Send() {
  Distribute();
  for (auto next = unfinished_.begin(); next != unfinished_.end();) {
    const int number = *next;
    auto found = lines_.find(number);
    if (found != lines_.end() && found->second.fd.valid()) Write(number, found->second);
    found = lines_.find(number);
    const bool here = found != lines_.end() && found->second.fd.valid();
    // One that is away continues with all that it has not delivered.
    const bool done = !here || found->second.queue.empty();
    next = done ? unfinished_.erase(next) : std::next(next);
    if (done && here && found->second.unused.has_value()) Finish(found->second, MonotonicNow());
  }
}

// ---- Peers that are away ----

void TreeConnections::Break(int number) {
  Line& line = lines_.at(number);
  thread_->Wake(*this);
  // Before they have met, the tree is not complete.
  if (!line.meeting.has_value()) {
    Drop(number);
    return;
  }
  const absl::Time now = MonotonicNow();
  line.absence.emplace(line.terms.limits, now, now - net::SilenceOf(line.fd.get()));
  SetAway(number, true);
  Unregister(line.fd);
  net::CloseByReset(std::move(line.fd));
  line.queue = SendQueue();
  line.for_room = false;
  line.finished.reset();
}

void TreeConnections::LookForSilence(absl::Time now) {
  if (now < next_look_) return;
  next_look_ = absl::InfiniteFuture();
  std::vector<int> silent;
  for (const auto& [number, line] : lines_) {
    const SilenceLimits& limits = line.terms.limits;
    next_look_ = std::min(next_look_, now + limits.lost / kLooks);
    if (line.fd.valid() && net::SilenceOf(line.fd.get()) >= limits.lost) silent.push_back(number);
  }
  for (const int number : silent) Break(number);
}

void TreeConnections::SetAway(int number, bool away) {
  multiplexer_.SetAway(number, away);
  for (const Multiplexer::Channel channel : multiplexer_.ChannelsOf(number)) {
    const auto owner = owners_.find(channel);
    if (owner != owners_.end()) thread_->Wake(*owner->second.client);
  }
}

bool TreeConnections::IsAway(Multiplexer::Channel channel) const {
  const std::vector<int> numbers = multiplexer_.ConnectionsOf(channel);
  return std::any_of(numbers.begin(), numbers.end(), [this](int number) {
    const auto found = lines_.find(number);
    return found != lines_.end() && found->second.absence.has_value();
  });
}

absl::Time TreeConnections::LastSign(int number) const {
  absl::Time last = absl::InfinitePast();
  for (const Multiplexer::Channel channel : multiplexer_.ChannelsOf(number)) {
    const auto owner = owners_.find(channel);
    if (owner != owners_.end()) last = std::max(last, owner->second.last_sign());
  }
  return last;
}

absl::Time TreeConnections::Restore(absl::Time now) {
  absl::Time next = absl::InfiniteFuture();
  std::vector<int> away;
  for (const auto& [number, line] : lines_) {
    if (line.absence.has_value()) away.push_back(number);
  }
  for (const int number : away) {
    Line& line = lines_.at(number);
    Dial(number, line, now);
    // It may have come back, or ended.
    const auto found = lines_.find(number);
    if (found == lines_.end() || !line.absence.has_value()) continue;
    // The rails do not watch peers of an unused connection; so it is given up only if its peer
    // refuses for longer than a firewall may while a network is restored.
    const absl::Time sign = line.unused.has_value() ? *line.unused : LastSign(number);
    if (line.absence->Gone(now, sign)) {
      Drop(number);
      continue;
    }
    next = std::min(next, now + kAwayPause);
    next = std::min(next, line.redial.has_value() ? line.redial->deadline() : line.absence->next());
  }
  return next;
}

void TreeConnections::Dial(int number, Line& line, absl::Time now) {
  if (!line.redial.has_value()) {
    const auto place = ParsePlace(line.meeting->about);
    if (!place.ok() || !place->has_value() || now < line.absence->next()) return;
    const std::string name = NameOf(line.meeting->theirs, line.meeting->mine);
    absl::StatusOr<Redial> redial = Redial::Start(
        **place, {name, SecretFor(line.terms.secret, name)},
        {++line.last_attempt, line.session.received()}, now + line.terms.limits.attempt);
    if (redial.ok()) {
      if (absl::Status watched = WatchOnce(redial->fd(), EPOLLIN | EPOLLOUT); !watched.ok()) {
        redial = watched;
      }
    }
    if (!redial.ok()) {
      OnFailure(*line.absence, redial.status(), now);
      return;
    }
    line.redial = *std::move(redial);
  }
  const absl::StatusOr<std::optional<Resume>> theirs = line.redial->Advance(now);
  if (theirs.ok() && !theirs->has_value()) return;
  if (!theirs.ok()) {
    StopDialing(line);
    OnFailure(*line.absence, theirs.status(), now);
    return;
  }
  Redial redial = *std::exchange(line.redial, std::nullopt);
  net::Fd fd = redial.TakeFd();
  Unregister(fd);
  Continue(number, std::move(fd), redial.TakeReader(), {redial.number(), line.meeting->mine},
           **theirs, "");
}

void TreeConnections::StopDialing(Line& line) {
  if (!line.redial.has_value()) return;
  net::Fd fd = line.redial->TakeFd();
  line.redial.reset();
  Unregister(fd);
  // The peer may have continued there.
  net::CloseByReset(std::move(fd));
}

int TreeConnections::Find(absl::string_view name) const {
  for (const auto& [number, line] : lines_) {
    if (line.meeting.has_value() && NameOf(line.meeting->mine, line.meeting->theirs) == name) {
      return number;
    }
  }
  return kListener;
}

void TreeConnections::ServeVisitors(absl::Time now) {
  while (listener_.valid()) {
    absl::StatusOr<net::Fd> fd = net::Accept(listener_.get());
    if (!fd.ok() || !fd->valid()) break;
    if (!WatchOnce(fd->get(), EPOLLIN).ok()) continue;
    if (visitors_.size() >= kMostVisitors) visitors_.pop_front();
    visitors_.emplace_back(*std::move(fd), now + kVisit);
  }
  const auto secret_of = [this](absl::string_view name) -> std::optional<Secret> {
    const int number = Find(name);
    if (number == kListener) return std::nullopt;
    return SecretFor(lines_.at(number).terms.secret, name);
  };
  for (auto visitor = visitors_.begin(); visitor != visitors_.end();) {
    const auto claim = visitor->Advance(now, secret_of);
    if (claim.ok() && claim->has_value()) Admit(std::move(*visitor), **claim);
    visitor = claim.ok() && !claim->has_value() ? std::next(visitor) : visitors_.erase(visitor);
  }
}

void TreeConnections::Admit(ReturnVisitor visitor, const ReturnVisitor::Claim& claim) {
  const int number = Find(claim.name);
  if (number == kListener) return;
  Line& line = lines_.at(number);
  const Attempt theirs = {claim.theirs.attempt, line.meeting->theirs};
  line.last_attempt = std::max(line.last_attempt, theirs.number);
  if (theirs <= line.attempt) return;
  // The peer prefers this process's attempt, too.
  if (line.redial.has_value() && line.redial->claimed() &&
      theirs < Attempt{line.redial->number(), line.meeting->mine}) {
    return;
  }
  net::Fd fd = visitor.TakeFd();
  Unregister(fd);
  Continue(number, std::move(fd), visitor.TakeReader(), theirs, claim.theirs,
           EncodeFrame(FrameKind::kResume, EncodeResume({theirs.number, line.session.received()})));
}

void TreeConnections::Continue(int number, net::Fd fd, FrameReader reader, Attempt attempt,
                               const Resume& theirs, absl::string_view first) {
  Line& line = lines_.at(number);
  StopDialing(line);
  if (line.fd.valid()) {
    Unregister(line.fd);
    net::CloseByReset(std::move(line.fd));
  }
  line.absence.reset();
  SetAway(number, false);
  const absl::StatusOr<std::string> missed = line.session.Resume(theirs.received);
  if (!missed.ok() || !Watch(fd.get(), number, EPOLLIN).ok()) {
    Drop(number);
    return;
  }
  net::TestWhenIdle(fd.get(), line.terms.limits.idle, line.terms.limits.interval);
  line.fd = std::move(fd);
  line.reader = std::move(reader);
  line.reader.set_limit(kAllLimit);
  line.queue = SendQueue();
  line.queue.Add(first);
  line.queue.Add(*missed);
  line.for_room = false;
  line.finished.reset();
  line.attempt = std::move(attempt);
  unfinished_.insert(number);
  if (!Understand(number, line)) Drop(number);
}

void TreeConnections::Flush(const std::vector<Multiplexer::Channel>& channels,
                            absl::Time deadline) {
  while (true) {
    Send();
    std::vector<pollfd> entries;
    for (const Multiplexer::Channel channel : channels) {
      for (const int number : multiplexer_.ConnectionsOf(channel)) {
        const auto found = lines_.find(number);
        if (found == lines_.end() || !found->second.fd.valid() || found->second.queue.empty()) {
          continue;
        }
        entries.push_back({found->second.fd.get(), POLLOUT, 0});
      }
    }
    if (entries.empty() || MonotonicNow() >= deadline) return;
    ::poll(entries.data(), entries.size(), net::PollTimeout(deadline));
  }
}

absl::StatusOr<TreeChannels> TreeChannels::Of(Links links, TreeConnections::Terms terms) {
  absl::StatusOr<std::shared_ptr<TreeConnections>> connections = TreeConnections::Get();
  if (!connections.ok()) return connections.status();
  std::vector<Registered> registered;
  absl::Status failure;
  for (Links::Connection& connection : std::move(links).Release()) {
    const absl::StatusOr<int> number = (*connections)->Register(connection.fd);
    failure.Update(number.status());
    if (number.ok()) registered.push_back({*number, std::move(connection)});
  }
  if (failure.ok()) {
    return TreeChannels(*std::move(connections), std::move(terms), std::move(registered));
  }
  for (const Registered& one : registered) (*connections)->Unregister(one.connection.fd);
  return failure;
}

void TreeChannels::Open(net::WatchThread::Client& owner,
                        const std::function<absl::Time(int rank)>& last_sign) {
  for (Registered& one : std::exchange(registered_, {})) {
    const int rank = one.connection.rank;
    channels_[rank] = connections_->Open(one.number, std::move(one.connection), terms_,
                                         {&owner, [last_sign, rank] { return last_sign(rank); }});
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

std::map<int, bool> TreeChannels::TakeTurned() {
  std::map<int, bool> turned;
  for (const auto& [rank, channel] : channels_) {
    const bool away = connections_->IsAway(channel);
    if (away == away_.contains(rank)) continue;
    turned[rank] = away;
    if (away) {
      away_.insert(rank);
    } else {
      away_.erase(rank);
    }
  }
  return turned;
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
