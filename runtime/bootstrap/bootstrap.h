// SPDX-License-Identifier: Apache-2.0
//
// How the ranks of a job find each other and agree.
//
// Join: rank 0 listens, and the others dial it until it answers; its address is all that they know.
// Both sides prove that they know the job's secret (handshake.h). When everyone is there, rank 0
// tells each rank where its parent and its guardian in the tree (tree.h) listen, and the ranks
// connect to these in the same way. When a first exchange is through, the tree stands, and the
// other connections to rank 0 close. Whoever else connects (a
// scraper, a port scan, a rank of another job) is turned away, counted, and delays nobody.
//
// Agree: every rank gives some bytes, rank 0 decides what they come to, and everybody gets that. A
// rank that cannot go on gives its reason instead, and then every rank's Agree returns that reason:
// nobody is left waiting and everybody names the same culprit. Exchange: what they come to is all
// of them, which in a large world only small things should be.
//
// The tree's connections stay open afterwards, so that a rank's death is noticed by all (watch.h).
#ifndef RAILHEAD_RUNTIME_BOOTSTRAP_BOOTSTRAP_H_
#define RAILHEAD_RUNTIME_BOOTSTRAP_BOOTSTRAP_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/base/halt.h"
#include "runtime/base/log.h"
#include "runtime/bootstrap/call.h"
#include "runtime/bootstrap/door.h"
#include "runtime/bootstrap/handshake.h"
#include "runtime/bootstrap/links.h"
#include "runtime/bootstrap/node.h"
#include "runtime/bootstrap/secret.h"
#include "runtime/net/address.h"
#include "runtime/net/fd.h"

namespace railhead::bootstrap {

struct JoinOptions {
  int rank = 0;
  int world_size = 1;
  std::string host;  // where rank 0 is; not used by rank 0 itself
  int port = 0;
  // Rank 0 only: a socket that listens already. Without one it listens on `port`.
  std::optional<net::Fd> listener;
  std::string job;   // ranks with another one are turned away
  Secret secret;     // and those that do not know this
  std::string name;  // where this rank runs ("pod a on node b"), for messages; may be empty
  // Why this rank cannot take part. Join tells the others, for a few seconds, and returns it.
  absl::Status trouble;
  absl::Time deadline;
  Halt hopeless;  // why not all ranks will come; matters until they have
  Halt aborted;   // why this rank is to give up; matters in every exchange, too
  Logger log;
};

// Not thread-safe. Movable.
class Bootstrap {
 public:
  // Returns once every rank is there. DeadlineExceeded names who is missing; on rank 0's verdict
  // all ranks that did arrive return the same text.
  static absl::StatusOr<Bootstrap> Join(JoinOptions options);

  // Gives `mine` to all and returns what everybody gave, by rank. If any rank gives an error, all
  // ranks return that error's text with its code. After an error the bootstrap is of no more use.
  absl::StatusOr<std::vector<std::string>> Exchange(absl::StatusOr<std::string> mine,
                                                    absl::Time deadline);

  // Gives `mine` to rank 0, where `decide` makes the answer of it. Errors as for Exchange; one of
  // `decide` is everybody's, too.
  absl::StatusOr<Node::Result> Agree(absl::StatusOr<std::string> mine, Node::Decide decide,
                                     absl::Time deadline) {
    return Agree(std::move(mine), std::move(decide), deadline, nullptr);
  }

  // What those are told who look for this rank (Watch::Locate).
  void SetPlace(std::string place) { node_.SetPlace(std::move(place)); }

  int rank() const { return node_.rank(); }
  int world_size() const { return node_.world_size(); }

  // "rank 2 (pod a on node b)"; rank 0 knows all names, others their own and their neighbours'.
  std::string Describe(int rank) const { return node_.Describe(rank); }

  // What the ranks of this meeting have in common: their secret, or without one what rank 0 has
  // drawn for it, which whoever listens in on the rendezvous knows as well.
  const Secret& session() const { return session_; }

  // This machine's address on the connection to the others; nullopt in a world of one.
  const std::optional<net::IpAddress>& local_address() const { return local_address_; }

  // Connections turned away while the ranks gathered.
  uint64_t rejected_connections() const { return rejected_; }

  // Hands everything over to whoever watches the tree from now on.
  std::pair<Node, Links> Take() && { return {std::move(node_), std::move(links_)}; }

 private:
  Bootstrap(int rank, int world_size) : node_(rank, world_size) {}

  // Where rank 0 waits.
  absl::StatusOr<net::Fd> ListenFor(JoinOptions& options) const;
  absl::Status HostJoin(JoinOptions& options);
  absl::Status GuestJoin(const JoinOptions& options);
  // Says to whoever can be reached why this rank does not come.
  void TellTrouble(JoinOptions& options);
  // The connection to rank 0, once everybody is there and rank 0 has said so in `welcome`.
  absl::StatusOr<Call> Arrive(const JoinOptions& options, uint16_t door_port, std::string* welcome);
  class Host;
  // One attempt: dials, shakes hands, and waits for the welcome as long as the connection holds.
  Call TryToArrive(const JoinOptions& options, Host& host, uint16_t door_port,
                   std::string* welcome);
  absl::Status ConnectUp(int to, const std::optional<net::SocketAddress>& place, const Hello& hello,
                         const Secret& secret, absl::Time deadline);
  // The tree's first exchange.
  absl::Status TryTree(absl::Time deadline, Door* door);
  // With a door, ranks come in through it meanwhile.
  absl::StatusOr<Node::Result> Agree(absl::StatusOr<std::string> mine, Node::Decide decide,
                                     absl::Time deadline, Door* door);
  void Attach(int rank, const std::string& name, net::Fd fd, FrameReader reader);
  absl::Status Fail();

  Node node_;
  Links links_;
  std::optional<net::IpAddress> local_address_;
  uint64_t rejected_ = 0;
  Secret session_;
  Halt aborted_;
};

}  // namespace railhead::bootstrap

#endif  // RAILHEAD_RUNTIME_BOOTSTRAP_BOOTSTRAP_H_
