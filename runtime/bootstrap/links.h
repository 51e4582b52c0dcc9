// SPDX-License-Identifier: Apache-2.0
//
// Sockets of one rank's tree connections until the tree is complete: carries messages between them
// and a Node. Then the watchdog takes them over (tree_connections.h).
#ifndef RAILHEAD_RUNTIME_BOOTSTRAP_LINKS_H_
#define RAILHEAD_RUNTIME_BOOTSTRAP_LINKS_H_

#include <poll.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "runtime/bootstrap/frame.h"
#include "runtime/bootstrap/node.h"
#include "runtime/bootstrap/send_queue.h"
#include "runtime/net/fd.h"

namespace railhead::bootstrap {

// Never waits for a single connection: a peer that does not read delays no other. Not thread-safe.
// Movable.
class Links {
 public:
  // Takes over a connection, with the bytes already read from it.
  void Add(int rank, net::Fd fd, FrameReader reader);
  void Remove(int rank) { links_.erase(rank); }

  // Queues a frame for a rank; ignored without a connection to it.
  void Queue(int rank, FrameKind kind, absl::string_view payload);

  // Sends the node's messages as far as sockets accept them, waits for input or the deadline, and
  // passes input to the node. Also polls `others` and sets their revents.
  void Turn(Node& node, std::vector<pollfd>& others, absl::Time deadline);

  // Sends the node's messages, and waits until sockets accepted them or the deadline.
  void Flush(Node& node, absl::Time deadline);

  // A connection of the complete tree, for the watchdog.
  struct Connection {
    int rank = 0;
    net::Fd fd;
    FrameReader reader;
    SendQueue queue;
    std::string meeting;  // the payload of kMeet, if it has arrived
    uint64_t met = 0;     // frames that have arrived from then on, with it
  };
  std::vector<Connection> Release() &&;

  // Ends after a failure: gives the others time to read the cause before connections close.
  void Farewell(Node& node, absl::Time deadline);

 private:
  struct Link {
    net::Fd fd;
    FrameReader reader;
    SendQueue queue;
    bool fresh = false;   // the reader may contain complete frames
    std::string meeting;  // the payload of kMeet, of a peer that watches already
    uint64_t met = 0;     // see Connection
  };

  void Collect(Node& node);
  // Returns false at the end of the connection.
  static bool Receive(int rank, Link& link, Node& node, bool readable);

  std::map<int, Link> links_;
};

}  // namespace railhead::bootstrap

#endif  // RAILHEAD_RUNTIME_BOOTSTRAP_LINKS_H_
