// SPDX-License-Identifier: Apache-2.0
#include "runtime/bootstrap/multiplexer.h"

#include <algorithm>
#include <iterator>

#include "runtime/base/wire.h"

namespace railhead::bootstrap {
namespace {

// The rest of kMeet.
constexpr size_t kMostAbout = 256;

// The channel for which a connection was made.
constexpr uint32_t kOwn = 0;

}  // namespace

Multiplexer::Multiplexer(std::string process, std::function<std::string()> random)
    : process_(std::move(process)), random_(std::move(random)) {}

Multiplexer::Channel Multiplexer::Open(Connection connection, const std::string& about) {
  const Channel channel = ++last_channel_;
  channels_[channel].place = {connection, kOwn};
  ConnectionState& state = connections_[connection];
  state.channels[kOwn] = channel;
  state.mine = random_();
  WireWriter writer;
  writer.Raw(process_);
  writer.Raw(state.mine);
  std::string names = writer.Take();
  // Without random bytes, it is not shared.
  if (names.size() == 2 * kNameSize) {
    outgoing_.push_back({connection, FrameKind::kMeet, names + about});
  }
  return channel;
}

void Multiplexer::Send(Channel channel, FrameKind kind, absl::string_view payload) {
  const auto found = channels_.find(channel);
  if (found == channels_.end() || found->second.ended) return;
  ChannelState& state = found->second;
  if (state.credit == 0) {
    state.waiting.push_back({kind, std::string(payload)});
    return;
  }
  if (state.credit.has_value()) --*state.credit;
  Send(state, kind, payload);
}

void Multiplexer::Send(const ChannelState& state, FrameKind kind, absl::string_view payload) {
  if (state.move != Move::kAccepted) {
    Send(state.place, kind, payload);
  } else if (state.next.has_value()) {
    Send(*state.next, kind, payload);
  }
}

void Multiplexer::Send(const Place& place, FrameKind kind, absl::string_view payload) {
  if (place.number == kOwn) {
    outgoing_.push_back({place.connection, kind, std::string(payload)});
    return;
  }
  WireWriter writer;
  writer.U32(place.number);
  writer.U32(static_cast<uint32_t>(kind));
  writer.Raw(payload);
  outgoing_.push_back({place.connection, FrameKind::kChannel, writer.Take()});
}

std::vector<Frame> Multiplexer::Take(Channel channel) {
  const auto found = channels_.find(channel);
  if (found == channels_.end()) return {};
  std::deque<Frame>& arrived = found->second.arrived;
  std::vector<Frame> frames(std::make_move_iterator(arrived.begin()),
                            std::make_move_iterator(arrived.end()));
  arrived.clear();
  return frames;
}

bool Multiplexer::Ended(Channel channel) const {
  const auto found = channels_.find(channel);
  return found == channels_.end() || found->second.ended;
}

std::vector<Multiplexer::Connection> Multiplexer::ConnectionsOf(Channel channel) const {
  const auto found = channels_.find(channel);
  if (found == channels_.end() || found->second.ended) return {};
  std::vector<Connection> connections = {found->second.place.connection};
  if (found->second.next.has_value()) connections.push_back(found->second.next->connection);
  return connections;
}

std::vector<Multiplexer::Channel> Multiplexer::ChannelsOf(Connection connection) const {
  std::vector<Channel> channels;
  const auto found = connections_.find(connection);
  if (found == connections_.end()) return channels;
  for (const auto& [number, channel] : found->second.channels) channels.push_back(channel);
  return channels;
}

std::optional<Multiplexer::Meeting> Multiplexer::MeetingOf(Connection connection) const {
  const auto found = connections_.find(connection);
  if (found == connections_.end() || found->second.theirs.empty()) return std::nullopt;
  return Meeting{found->second.mine, found->second.theirs, found->second.about};
}

void Multiplexer::Close(Channel channel) {
  const auto found = channels_.find(channel);
  if (found == channels_.end()) return;
  ChannelState& state = found->second;
  if (state.ended || state.waiting.empty()) {
    CloseNow(channel);
    return;
  }
  // Its queued data goes first.
  state.closing = true;
  state.arrived.clear();
  stirred_.erase(channel);
}

void Multiplexer::CloseNow(Channel channel) {
  const auto found = channels_.find(channel);
  const ChannelState state = std::move(found->second);
  channels_.erase(found);
  stirred_.erase(channel);
  if (state.ended) return;
  for (const std::optional<Place>& place : {std::optional<Place>(state.place), state.next}) {
    if (!place.has_value()) continue;
    Leave(*place);
    // A connection with other channels stays open, so its end does not show this one's.
    if (!connections_.contains(place->connection)) continue;
    WireWriter writer;
    writer.U32(place->number);
    outgoing_.push_back({place->connection, FrameKind::kEnd, writer.Take()});
  }
}

void Multiplexer::Leave(const Place& place) {
  const auto found = connections_.find(place.connection);
  if (found == connections_.end()) return;
  found->second.channels.erase(place.number);
  if (!found->second.channels.empty()) return;
  connections_.erase(found);
  unused_.push_back(place.connection);
}

void Multiplexer::End(Channel channel) {
  ChannelState& state = channels_[channel];
  state.ended = true;
  state.waiting.clear();
  stirred_.insert(channel);
  Leave(state.place);
  if (state.next.has_value()) Leave(*state.next);
  if (state.closing) CloseNow(channel);
}

void Multiplexer::Lost(Connection connection) {
  const auto found = connections_.find(connection);
  if (found == connections_.end()) return;
  const std::map<uint32_t, Channel> channels = std::move(found->second.channels);
  connections_.erase(found);
  for (const auto& [number, channel] : channels) {
    ChannelState& state = channels_[channel];
    if (state.place.connection == connection) {
      End(channel);
    } else {
      // Frames that came over it stay held: the old connection will show whether the channel moved.
      state.next.reset();
    }
  }
}

void Multiplexer::SetAway(Connection connection, bool away) {
  const auto found = connections_.find(connection);
  if (found != connections_.end()) found->second.away = away;
}

bool Multiplexer::Receive(Connection connection, Frame frame) {
  const auto found = connections_.find(connection);
  if (found == connections_.end() || Understand(connection, found->second, frame)) return true;
  Lost(connection);
  unused_.push_back(connection);
  return false;
}

bool Multiplexer::IsOfTree(FrameKind kind) {
  return kind >= FrameKind::kGather && kind <= FrameKind::kLocated;
}

bool Multiplexer::Understand(Connection connection, ConnectionState& state, Frame& frame) {
  switch (frame.kind) {
    case FrameKind::kMeet:
      return Meet(connection, state, frame.payload);
    case FrameKind::kMove:
      return Accept(connection, state, frame.payload);
    case FrameKind::kMoved:
      return Moved(state, frame.payload);
    case FrameKind::kStay:
      return Stay(state);
    case FrameKind::kSettled:
      return Settled(connection, state, frame.payload);
    case FrameKind::kEnd: {
      WireReader reader(frame.payload);
      const uint32_t number = reader.U32();
      return reader.Complete() && Deliver({connection, number}, {FrameKind::kEnd, ""});
    }
    case FrameKind::kChannel: {
      WireReader reader(frame.payload);
      const uint32_t number = reader.U32();
      const auto kind = static_cast<FrameKind>(reader.U32());
      if (!reader.ok() || number == kOwn || !IsOfTree(kind)) return false;
      frame.payload.erase(0, 2 * sizeof(uint32_t));
      return Deliver({connection, number}, {kind, std::move(frame.payload)});
    }
    default:
      // The tree rejects frames of unknown kinds.
      return Deliver({connection, kOwn}, std::move(frame));
  }
}

Multiplexer::ChannelState* Multiplexer::OwnOf(const ConnectionState& state) {
  const auto own = state.channels.find(kOwn);
  return own == state.channels.end() ? nullptr : &channels_[own->second];
}

bool Multiplexer::Meet(Connection connection, ConnectionState& state, absl::string_view payload) {
  WireReader reader(payload);
  const std::string process(reader.Raw(kNameSize));
  const std::string theirs(reader.Raw(kNameSize));
  if (!reader.ok() || payload.size() > 2 * kNameSize + kMostAbout || !state.theirs.empty()) {
    return false;
  }
  state.theirs = theirs;
  state.process = process;
  state.about = std::string(payload.substr(2 * kNameSize));
  // Only one of the two processes decides, for all of their connections.
  if (process_ <= state.process || OwnOf(state) == nullptr) return true;
  for (const auto& [other, older] : connections_) {
    if (other == connection || older.process != state.process || older.away) continue;
    // A connection that moves away itself will end.
    const ChannelState* const own = OwnOf(older);
    if (own != nullptr && own->move != Move::kNone) continue;
    Propose(connection, state.channels[kOwn], other);
    break;
  }
  return true;
}

void Multiplexer::Propose(Connection connection, Channel channel, Connection older) {
  ConnectionState& target = connections_[older];
  const uint32_t number = ++target.last_number;
  target.channels[number] = channel;
  ChannelState& state = channels_[channel];
  state.move = Move::kProposed;
  state.next = Place{older, number};
  WireWriter writer;
  writer.Raw(target.mine);
  writer.U32(number);
  outgoing_.push_back({connection, FrameKind::kMove, writer.Take()});
}

bool Multiplexer::Accept(Connection connection, ConnectionState& state, absl::string_view payload) {
  WireReader reader(payload);
  const std::string name(reader.Raw(kNameSize));
  const uint32_t number = reader.U32();
  ChannelState* const own = OwnOf(state);
  if (!reader.Complete() || number == kOwn || process_ >= state.process) return false;
  if (own != nullptr && own->move != Move::kNone) return false;
  const auto target =
      std::find_if(connections_.begin(), connections_.end(), [&](const auto& other) {
        return other.first != connection && other.second.theirs == name &&
               other.second.process == state.process && !other.second.away;
      });
  if (own == nullptr || target == connections_.end()) {
    outgoing_.push_back({connection, FrameKind::kStay, ""});
    return true;
  }
  if (!target->second.channels.emplace(number, state.channels[kOwn]).second) return false;
  outgoing_.push_back({connection, FrameKind::kMoved, target->second.mine});
  own->move = Move::kAccepted;
  own->next = Place{target->first, number};
  own->credit = kCredit;
  return true;
}

bool Multiplexer::Moved(ConnectionState& state, absl::string_view payload) {
  ChannelState* const own = OwnOf(state);
  if (own == nullptr) return true;  // closed here
  const Channel channel = state.channels[kOwn];
  switch (own->move) {
    case Move::kNone:
      return false;
    case Move::kAccepted:
      Settle(channel);
      return true;
    case Move::kProposed:
      break;
  }
  if (own->next.has_value()) {
    // Only the process at the other end of both connections knows this.
    if (payload != connections_[own->next->connection].theirs) return false;
    outgoing_.push_back({own->place.connection, FrameKind::kMoved, ""});
    own->credit = kCredit;
  }
  Settle(channel);
  return true;
}

void Multiplexer::Settle(Channel channel) {
  ChannelState& state = channels_[channel];
  state.move = Move::kNone;
  if (!state.closing) stirred_.insert(channel);
  bool ended = false;
  for (Frame& frame : std::exchange(state.held, {})) {
    ended = ended || frame.kind == FrameKind::kEnd;
    if (!ended && !state.closing) state.arrived.push_back(std::move(frame));
  }
  if (state.next.has_value()) {
    WireWriter writer;
    writer.U32(state.next->number);
    outgoing_.push_back({state.next->connection, FrameKind::kSettled, writer.Take()});
    Leave(std::exchange(state.place, *std::exchange(state.next, std::nullopt)));
  } else {
    ended = true;
  }
  if (ended) End(channel);
}

bool Multiplexer::Stay(ConnectionState& state) {
  ChannelState* const own = OwnOf(state);
  if (own == nullptr) return true;
  if (own->move != Move::kProposed || !own->held.empty()) return false;
  own->move = Move::kNone;
  if (own->next.has_value()) Leave(*std::exchange(own->next, std::nullopt));
  return true;
}

bool Multiplexer::Settled(Connection connection, ConnectionState& state,
                          absl::string_view payload) {
  WireReader reader(payload);
  const uint32_t number = reader.U32();
  if (!reader.Complete()) return false;
  const auto found = state.channels.find(number);
  if (found == state.channels.end()) return true;  // closed here
  const Channel channel = found->second;
  ChannelState& settled = channels_[channel];
  const Place& now =
      settled.move == Move::kAccepted && settled.next.has_value() ? *settled.next : settled.place;
  if (!settled.credit.has_value() || now.connection != connection || now.number != number) {
    return false;
  }
  settled.credit.reset();
  for (const Frame& frame : std::exchange(settled.waiting, {})) {
    Send(settled, frame.kind, frame.payload);
  }
  if (settled.closing) CloseNow(channel);
  return true;
}

bool Multiplexer::Deliver(Place from, Frame frame) {
  const ConnectionState& connection = connections_[from.connection];
  const auto found = connection.channels.find(from.number);
  if (found == connection.channels.end()) return true;
  ChannelState& state = channels_[found->second];
  if (state.place.connection != from.connection) {
    if (!state.held.empty() && state.held.back().kind == FrameKind::kEnd) return true;
    if (frame.kind != FrameKind::kEnd && state.held.size() >= kCredit) return false;
    state.held.push_back(std::move(frame));
    return true;
  }
  if (frame.kind == FrameKind::kEnd) {
    End(found->second);
    return true;
  }
  if (state.closing) return true;
  state.arrived.push_back(std::move(frame));
  stirred_.insert(found->second);
  return true;
}

}  // namespace railhead::bootstrap
