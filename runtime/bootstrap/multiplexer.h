// SPDX-License-Identifier: Apache-2.0
//
// Connections of trees that several communicators share. Communicators of the same ranks connect
// the same processes, again and again; a process has one connection to each of the others, and on
// it a channel for each communicator.
//
// A communicator's tree starts with new connections, whose ends prove that they know its secret.
// Then both processes name themselves (kMeet). If they share an older connection, one of the two,
// the decider, proposes to continue there (kMove), and both do so as soon as each knows that it has
// everything that was sent over the new one, which then closes:
//
//     decider                           other
//        |  -- kMove: connection, id -->  |   it has that connection, too
//        |  <------------- kMoved ------  |   the last frame here; sends there from now on
//        |  -- kMoved ----------------->  |   the last frame here; sends there from now on
//
// Frames that arrive there before the last frame here are held back. Each side sends at most
// kCredit frames there until the other reports that it has that last frame (kSettled, there); more
// wait at their sender, so that a receiver holds a limited number, and other channels are not
// delayed. If the other no longer has that connection, it answers kStay.
//
// A connection that ends ends all of its channels: then the process is gone. A channel that its
// owner closes ends alone (kEnd).
//
// Pure: frames in, frames out; no socket or clock. Not thread-safe.
#ifndef RAILHEAD_RUNTIME_BOOTSTRAP_MULTIPLEXER_H_
#define RAILHEAD_RUNTIME_BOOTSTRAP_MULTIPLEXER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "runtime/bootstrap/frame.h"

namespace railhead::bootstrap {

class Multiplexer {
 public:
  // Numbers of this process's connections, given by the caller, and of its channels.
  using Connection = int;
  using Channel = int;

  static constexpr size_t kNameSize = 16;
  // Frames of a channel that moves, before the other side has settled.
  static constexpr size_t kCredit = 1024;

  // `process`: kNameSize random bytes, a name of this process that no other has. `random` returns
  // as many.
  Multiplexer(std::string process, std::function<std::string()> random);

  // Adds a connection, with a channel on it. `about` is for the peer's MeetingOf.
  Channel Open(Connection connection, const std::string& about = "");
  // Sends a frame of the tree.
  void Send(Channel channel, FrameKind kind, absl::string_view payload);
  // Returns the frames that have arrived.
  std::vector<Frame> Take(Channel channel);
  // Returns true if the other side has closed the channel, or its connection has ended; there may
  // be frames to take that came before.
  bool Ended(Channel channel) const;
  void Close(Channel channel);
  // Returns the connections that carry frames of this channel, at most two.
  std::vector<Connection> ConnectionsOf(Channel channel) const;
  // Returns the channels that a connection carries.
  std::vector<Channel> ChannelsOf(Connection connection) const;

  // State of a connection that both processes know since the peer's kMeet.
  struct Meeting {
    std::string mine;  // random halves of the connection's name
    std::string theirs;
    std::string about;  // what the peer passed to Open
  };
  std::optional<Meeting> MeetingOf(Connection connection) const;

  // Input:
  // Returns false if the peer violates the protocol; the connection has then ended.
  bool Receive(Connection connection, Frame frame);
  // The connection has ended.
  void Lost(Connection connection);
  // The connection carries nothing now, or does so again. No channel moves to one that is away.
  void SetAway(Connection connection, bool away);

  // Output:
  struct Outgoing {
    Connection to = 0;
    FrameKind kind = FrameKind::kMeet;
    std::string payload;
  };
  std::vector<Outgoing> TakeOutgoing() { return std::exchange(outgoing_, {}); }
  // Returns connections without a channel. Close each when everything has been sent.
  std::vector<Connection> TakeUnused() { return std::exchange(unused_, {}); }
  // Returns channels with new frames, or that have ended.
  std::set<Channel> TakeStirred() { return std::exchange(stirred_, {}); }

 private:
  // A channel's place on a connection. Each connection was made for one channel, its own, with
  // number 0.
  struct Place {
    Connection connection = 0;
    uint32_t number = 0;
  };
  enum class Move : uint8_t { kNone, kProposed, kAccepted };

  struct ChannelState {
    Place place;
    Move move = Move::kNone;
    std::optional<Place> next;  // where it moves; nullopt if that one has ended
    std::deque<Frame> arrived;
    std::vector<Frame> held;  // that came over the next connection; kEnd stands for the end
    // After a move, until the other side has settled: frames that may still be sent, and those that
    // wait for it.
    std::optional<size_t> credit;
    std::vector<Frame> waiting;
    bool closing = false;  // closed by its owner, with frames that wait
    bool ended = false;
  };
  struct ConnectionState {
    std::string mine;    // random halves of the connection's name
    std::string theirs;  // "" before kMeet
    std::string process;
    std::string about;
    bool away = false;
    std::map<uint32_t, Channel> channels;  // by number
    uint32_t last_number = 0;
  };

  static bool IsOfTree(FrameKind kind);
  bool Understand(Connection connection, ConnectionState& state, Frame& frame);
  bool Meet(Connection connection, ConnectionState& state, absl::string_view payload);
  bool Accept(Connection connection, ConnectionState& state, absl::string_view payload);
  bool Moved(ConnectionState& state, absl::string_view payload);
  bool Stay(ConnectionState& state);
  // The other side has everything from this channel's old connection.
  bool Settled(Connection connection, ConnectionState& state, absl::string_view payload);
  // Adds a frame to its channel, which may have been closed here.
  bool Deliver(Place from, Frame frame);
  void Propose(Connection connection, Channel channel, Connection older);
  // The channel has everything from its old connection.
  void Settle(Channel channel);
  void End(Channel channel);
  void CloseNow(Channel channel);
  // Sends where the channel's frames go now.
  void Send(const ChannelState& state, FrameKind kind, absl::string_view payload);
  void Leave(const Place& place);
  void Send(const Place& place, FrameKind kind, absl::string_view payload);
  ChannelState* OwnOf(const ConnectionState& state);

  const std::string process_;
  const std::function<std::string()> random_;
  std::map<Connection, ConnectionState> connections_;
  std::map<Channel, ChannelState> channels_;
  Channel last_channel_ = 0;
  std::vector<Outgoing> outgoing_;
  std::vector<Connection> unused_;
  std::set<Channel> stirred_;
};

}  // namespace railhead::bootstrap

#endif  // RAILHEAD_RUNTIME_BOOTSTRAP_MULTIPLEXER_H_
