// SPDX-License-Identifier: Apache-2.0
//
// The sockets of one rank's place in the tree: carries messages between them and a Node.
#ifndef RAILHEAD_RUNTIME_BOOTSTRAP_LINKS_H_
#define RAILHEAD_RUNTIME_BOOTSTRAP_LINKS_H_

#include <poll.h>

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "runtime/bootstrap/frame.h"
#include "runtime/bootstrap/node.h"
#include "runtime/net/fd.h"

namespace railhead::bootstrap {

// Nothing here waits for one connection alone: a neighbour that does not read holds up nobody else.
// Not thread-safe. Movable.
class Links {
 public:
  // Takes a connection over, with what has been read from it already.
  void Add(int rank, net::Fd fd, FrameReader reader);
  void Remove(int rank) { links_.erase(rank); }

  // Puts a frame into the queue for a rank; without a connection to it nothing happens.
  void Queue(int rank, FrameKind kind, absl::string_view payload);

  // Sends what the node wants said, as far as sockets take it, waits until something arrives or the
  // deadline, and gives it to the node. `others` are polled too, and tell what became of them.
  void Turn(Node& node, std::vector<pollfd>& others, absl::Time deadline);

  // Sends what the node wants said, and waits until sockets have taken it or the deadline.
  void Flush(Node& node, absl::Time deadline);

  // The end after a failure: lets the others read why before the connections close.
  void Farewell(Node& node, absl::Time deadline);

 private:
  struct Link {
    net::Fd fd;
    FrameReader reader;
    std::string queue;
    size_t sent = 0;     // of the queue
    bool fresh = false;  // the reader may hold whole frames
  };

  void Collect(Node& node);
  static void Send(Link& link);
  bool AllSent() const;
  // Returns false at the end of the connection.
  static bool Receive(int rank, Link& link, Node& node, bool readable);

  std::map<int, Link> links_;
};

}  // namespace railhead::bootstrap

#endif  // RAILHEAD_RUNTIME_BOOTSTRAP_LINKS_H_
