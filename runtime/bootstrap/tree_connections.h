// SPDX-License-Identifier: Apache-2.0
//
// The sockets of all trees of this process that are watched, in the thread that watches them; trees
// of several communicators share them (multiplexer.h). Never waits for a single connection, unless
// asked to: a peer that does not read delays no other.
#ifndef RAILHEAD_RUNTIME_BOOTSTRAP_TREE_CONNECTIONS_H_
#define RAILHEAD_RUNTIME_BOOTSTRAP_TREE_CONNECTIONS_H_

#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/bootstrap/frame.h"
#include "runtime/bootstrap/links.h"
#include "runtime/bootstrap/multiplexer.h"
#include "runtime/bootstrap/node.h"
#include "runtime/bootstrap/send_queue.h"
#include "runtime/net/fd.h"
#include "runtime/net/watch_thread.h"

namespace railhead::bootstrap {

// One per process. For the watch thread, except where stated.
class TreeConnections final : private net::WatchThread::Client {
 public:
  // Thread-safe. Opened by its first user, closed by its last, which must have closed its channels.
  static absl::StatusOr<std::shared_ptr<TreeConnections>> Get();
  ~TreeConnections() override;
  TreeConnections(const TreeConnections&) = delete;
  TreeConnections& operator=(const TreeConnections&) = delete;

  // Thread-safe.
  net::WatchThread& thread() { return *thread_; }
  // Thread-safe. Returns a number for a connection, whose data wakes the thread from now on.
  absl::StatusOr<int> Register(const net::Fd& fd);
  // Thread-safe. Call it before the connection is closed: a child may keep it open.
  void Unregister(const net::Fd& fd);

  // Takes over a registered connection. `owner` has a turn when the channel has news.
  Multiplexer::Channel Open(int number, Links::Connection connection,
                            net::WatchThread::Client& owner);
  void Close(Multiplexer::Channel channel);
  Multiplexer& channels() { return multiplexer_; }

  // Sends as far as sockets accept it.
  void Send();
  // Sends, and waits until the sockets of these channels have accepted everything or the deadline.
  void Flush(const std::vector<Multiplexer::Channel>& channels, absl::Time deadline);

 private:
  struct Socket {
    net::Fd fd;
    FrameReader reader;
    SendQueue queue;
    bool for_room = false;  // the epoll waits for room, too
    bool unused = false;    // closed when the queue is empty
  };

  TreeConnections(std::shared_ptr<net::WatchThread> thread, net::Fd epoll, std::string process);

  std::optional<absl::Time> Turn() override;
  // Returns false at the end of the connection.
  bool Read(int number, Socket& socket);
  // Passes the frames in the reader on. Returns false if they violate the protocol.
  bool Understand(int number, Socket& socket);
  void Write(int number, Socket& socket);
  void Drop(int number);
  // Queues what the multiplexer sends, and wakes the owners of channels with news.
  void Distribute();

  const std::shared_ptr<net::WatchThread> thread_;
  const net::Fd epoll_;  // with the numbers of the connections as data
  std::atomic<int> last_number_{0};
  std::atomic<bool> stop_{false};

  Multiplexer multiplexer_;
  std::map<int, Socket> sockets_;
  std::set<int> unfinished_;  // with something to send, or unused
  std::map<Multiplexer::Channel, net::WatchThread::Client*> owners_;
};

// The connections of one watchdog's tree, by rank. For the watch thread, except where stated.
class TreeChannels {
 public:
  // For any thread. The sockets of `links` wake the thread from now on.
  static absl::StatusOr<TreeChannels> Of(Links links);

  // For any thread.
  net::WatchThread& thread() { return connections_->thread(); }

  // Call it first.
  void Open(net::WatchThread::Client& owner);
  void Close();
  // Passes to the node what has arrived, and which ranks are lost.
  void Deliver(Node& node);
  // Sends the node's messages as far as sockets accept them, and waits for them until the deadline.
  void Flush(Node& node, absl::Time deadline);

 private:
  struct Registered {
    int number = 0;
    Links::Connection connection;
  };

  TreeChannels(std::shared_ptr<TreeConnections> connections, std::vector<Registered> registered)
      : connections_(std::move(connections)), registered_(std::move(registered)) {}

  std::shared_ptr<TreeConnections> connections_;
  std::vector<Registered> registered_;  // not opened yet
  std::map<int, Multiplexer::Channel> channels_;
};

}  // namespace railhead::bootstrap

#endif  // RAILHEAD_RUNTIME_BOOTSTRAP_TREE_CONNECTIONS_H_
