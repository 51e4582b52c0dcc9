// SPDX-License-Identifier: Apache-2.0
//
// The sockets of all trees of this process that are watched, in the thread that watches them; trees
// of several communicators share them (multiplexer.h). Never waits for a single connection, unless
// asked to: a peer that does not read delays no other.
//
// A connection outlives its socket. If the peer's kernel closes the socket, the peer's process has
// ended, and the connection with it. If the network loses it (a timeout, an error, a reset), the
// peer is away: both processes dial each other (redial.h) until they are connected again, without a
// loss of frames (session.h), or the peer is gone (absence.h).
//
// A connection that this process no longer uses ends only when the peer has everything that was
// sent, because the last frames report that this rank leaves: a peer that misses them takes its end
// for a death. So the connection is closed for sending (a close with unread data would be a reset,
// which also discards what was sent), and read until the peer closes it. If the network loses it
// first, it is dialed anew. The wait is limited (SilenceLimits::farewell); it delays only the last
// user of a process, in the destructor.
#ifndef RAILHEAD_RUNTIME_BOOTSTRAP_TREE_CONNECTIONS_H_
#define RAILHEAD_RUNTIME_BOOTSTRAP_TREE_CONNECTIONS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/bootstrap/absence.h"
#include "runtime/bootstrap/frame.h"
#include "runtime/bootstrap/links.h"
#include "runtime/bootstrap/messages.h"
#include "runtime/bootstrap/multiplexer.h"
#include "runtime/bootstrap/node.h"
#include "runtime/bootstrap/redial.h"
#include "runtime/bootstrap/secret.h"
#include "runtime/bootstrap/send_queue.h"
#include "runtime/bootstrap/session.h"
#include "runtime/net/fd.h"
#include "runtime/net/watch_thread.h"

namespace railhead::bootstrap {

// One per process. For the watch thread, except where stated.
class TreeConnections final : private net::WatchThread::Client {
 public:
  // Thread-safe. Opened by its first user, closed by its last, which must have closed its channels.
  static absl::StatusOr<std::shared_ptr<TreeConnections>> Get();
  // Waits until the peers have everything that was sent; see above.
  ~TreeConnections() override;
  TreeConnections(const TreeConnections&) = delete;
  TreeConnections& operator=(const TreeConnections&) = delete;

  // Thread-safe.
  net::WatchThread& thread() { return *thread_; }
  // Thread-safe. Returns a number for a connection, whose data wakes the thread from now on.
  absl::StatusOr<int> Register(const net::Fd& fd);
  // Thread-safe. Call it before the connection is closed: a child may keep it open.
  void Unregister(const net::Fd& fd);

  // The owner of a channel: `client` has a turn when it has news. `last_sign` returns the time of
  // the peer's last sign on another path (HangObserver::LastSign).
  struct Owner {
    net::WatchThread::Client* client = nullptr;
    std::function<absl::Time()> last_sign;
  };
  // Values that both processes of a connection have agreed on.
  struct Terms {
    Secret secret;
    SilenceLimits limits;
  };
  // Takes over a registered connection.
  Multiplexer::Channel Open(int number, Links::Connection connection, Terms terms, Owner owner);
  void Close(Multiplexer::Channel channel);
  Multiplexer& channels() { return multiplexer_; }
  // Returns true if frames of the channel wait for a peer that is away.
  bool IsAway(Multiplexer::Channel channel) const;

  // Sends as far as sockets accept it.
  void Send();
  // Sends, and waits until the sockets of these channels have accepted everything or the deadline.
  void Flush(const std::vector<Multiplexer::Channel>& channels, absl::Time deadline);

 private:
  struct Line {
    net::Fd fd;  // not valid while the peer is away
    FrameReader reader{kAllLimit};
    SendQueue queue;
    Terms terms;
    Session session;
    bool for_room = false;               // the epoll waits for room, too
    std::optional<absl::Time> unused;    // since then; closed when the peer has everything
    std::optional<absl::Time> finished;  // when everything was sent: closed for sending
    std::optional<Multiplexer::Meeting> meeting;
    Attempt attempt;                 // the one that has led to the present socket
    uint64_t last_attempt = 0;       // of either side
    std::optional<Absence> absence;  // while the peer is away
    std::optional<Redial> redial;
  };
  enum class Stream { kOpen, kClosed, kBroken, kViolated };

  TreeConnections(std::shared_ptr<net::WatchThread> thread, net::Fd epoll, std::string process);
  // Listens for processes that have lost a connection. Without it, only this process dials.
  void Listen();

  std::optional<absl::Time> Turn() override;
  absl::Status Watch(int fd, int number, uint32_t events);
  // Each of its changes wakes the thread once.
  absl::Status WatchOnce(int fd, uint32_t events);
  Stream Read(int number, Line& line);
  void React(int number, Stream stream);
  // Passes the frames in the reader on. Returns false if they violate the protocol.
  bool Understand(int number, Line& line);
  void Write(int number, Line& line);
  // The connection has ended.
  void Drop(int number);
  // Closes an unused connection for sending.
  void Finish(Line& line, absl::Time now);
  // Ends unused connections whose peers have everything, or whose time is over. Returns when to do
  // so again.
  absl::Time Part(absl::Time now);

  // The socket is lost.
  void Break(int number);
  // Finds sockets whose peers acknowledge nothing.
  void LookForSilence(absl::Time now);
  // Continues to restore connections whose peers are away. Returns when to do so again.
  absl::Time Restore(absl::Time now);
  void Dial(int number, Line& line, absl::Time now);
  void StopDialing(Line& line);
  void ServeVisitors(absl::Time now);
  // A peer has dialed this process.
  void Admit(ReturnVisitor visitor, const ReturnVisitor::Claim& claim);
  // Returns the number of the connection with this name; 0 if there is none.
  int Find(absl::string_view name) const;
  // Continues at a new socket. `first`: what it has to carry before the frames.
  void Continue(int number, net::Fd fd, FrameReader reader, Attempt attempt, const Resume& theirs,
                absl::string_view first);
  void SetAway(int number, bool away);
  // Returns the time of the peer's last sign on the rails.
  absl::Time LastSign(int number) const;
  // Queues what the multiplexer sends, and wakes the owners of channels with news.
  void Distribute();

  const std::shared_ptr<net::WatchThread> thread_;
  const net::Fd epoll_;  // with the numbers of the connections as data
  std::atomic<int> last_number_{0};
  std::atomic<bool> stop_{false};

  net::Fd listener_;  // valid if it could be opened
  uint16_t port_ = 0;

  Multiplexer multiplexer_;
  std::map<int, Line> lines_;
  std::set<int> unfinished_;  // with something to send, or unused
  std::map<Multiplexer::Channel, Owner> owners_;
  std::list<ReturnVisitor> visitors_;
  absl::Time next_look_ = absl::InfinitePast();  // of LookForSilence
  std::optional<absl::Time> stopped_;            // when the last user has gone
};

// The connections of one watchdog's tree, by rank. For the watch thread, except where stated.
class TreeChannels {
 public:
  // For any thread. The sockets of `links` wake the thread from now on.
  static absl::StatusOr<TreeChannels> Of(Links links, TreeConnections::Terms terms);

  // For any thread.
  net::WatchThread& thread() { return connections_->thread(); }

  // Call it first. `last_sign` as in HangObserver.
  void Open(net::WatchThread::Client& owner, const std::function<absl::Time(int rank)>& last_sign);
  void Close();
  // Passes to the node what has arrived, and which ranks are lost.
  void Deliver(Node& node);
  // Returns ranks that are away since the last call, or are back (false).
  std::map<int, bool> TakeTurned();
  // Sends the node's messages as far as sockets accept them, and waits for them until the deadline.
  void Flush(Node& node, absl::Time deadline);

 private:
  struct Registered {
    int number = 0;
    Links::Connection connection;
  };

  TreeChannels(std::shared_ptr<TreeConnections> connections, TreeConnections::Terms terms,
               std::vector<Registered> registered)
      : connections_(std::move(connections)),
        terms_(std::move(terms)),
        registered_(std::move(registered)) {}

  std::shared_ptr<TreeConnections> connections_;
  TreeConnections::Terms terms_;
  std::vector<Registered> registered_;  // not opened yet
  std::map<int, Multiplexer::Channel> channels_;
  std::set<int> away_;
};

}  // namespace railhead::bootstrap

#endif  // RAILHEAD_RUNTIME_BOOTSTRAP_TREE_CONNECTIONS_H_
