// SPDX-License-Identifier: Apache-2.0
//
// Sockets of one rank's tree connections: carries messages between them and a Node.
#ifndef RAILHEAD_RUNTIME_BOOTSTRAP_LINKS_H_
#define RAILHEAD_RUNTIME_BOOTSTRAP_LINKS_H_

#include <poll.h>

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "runtime/bootstrap/frame.h"
#include "runtime/bootstrap/node.h"
#include "runtime/net/fd.h"

namespace railhead::bootstrap {

// Never waits for a single connection: a peer that does not read delays no other. Not thread-safe.
// Movable.
class Links {
 public:
  // Takes over a connection, with the bytes already read from it.
  void Add(int rank, net::Fd fd, FrameReader reader);
  void Remove(int rank) { links_.erase(rank); }

  // From now on, until they end, `epoll` has events with `owner` as data when these connections are
  // readable, or accept what is queued.
  absl::Status StirFrom(int epoll, void* owner);

  // Queues a frame for a rank; ignored without a connection to it.
  void Queue(int rank, FrameKind kind, absl::string_view payload);

  // Sends the node's messages as far as sockets accept them, waits for input or the deadline, and
  // passes input to the node. Also polls `others` and sets their revents.
  void Turn(Node& node, std::vector<pollfd>& others, absl::Time deadline);

  // Sends the node's messages, and waits until sockets accepted them or the deadline.
  void Flush(Node& node, absl::Time deadline);

  // Ends after a failure: gives the others time to read the cause before connections close.
  void Farewell(Node& node, absl::Time deadline);

 private:
  // A connection in an epoll, which it leaves before it is closed: a child may keep it open.
  class Stirring {
   public:
    Stirring(int epoll, int fd, void* owner) : epoll_(epoll), fd_(fd), owner_(owner) {}
    ~Stirring();
    Stirring(const Stirring&) = delete;
    Stirring& operator=(const Stirring&) = delete;
    // Whether it also waits for room.
    bool Wait(bool for_room);

   private:
    const int epoll_;
    const int fd_;
    void* const owner_;
    std::optional<bool> for_room_;  // nullopt: not in the epoll
  };

  struct Link {
    net::Fd fd;
    FrameReader reader;
    std::string queue;
    size_t sent = 0;     // of the queue
    bool fresh = false;  // the reader may contain complete frames
    std::unique_ptr<Stirring> stirring = nullptr;
  };

  void Collect(Node& node);
  static void Send(Link& link);
  // Returns false at the end of the connection.
  static bool Receive(int rank, Link& link, Node& node, bool readable);

  std::map<int, Link> links_;
};

}  // namespace railhead::bootstrap

#endif  // RAILHEAD_RUNTIME_BOOTSTRAP_LINKS_H_
