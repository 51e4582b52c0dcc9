// SPDX-License-Identifier: Apache-2.0
//
// Rendezvous of a job's ranks, and agreement between them.
//
// Join: rank 0 listens; the others know only how to find it (meeting_place.h) and dial it until it
// answers. Both sides
// prove that they know the job's secret (handshake.h). When all have arrived, rank 0 sends each
// rank the listening addresses of its parent and grandparent in the tree (tree.h), and the ranks
// connect to these in the same way. After a first exchange the tree is complete, and the other
// connections to rank 0 close. Other connections (a scraper, a port scan, a rank of another job)
// are rejected, counted, and delay no rank.
//
// Agree: every rank contributes bytes, rank 0 computes the result, and all receive it. A rank that
// cannot continue contributes its error instead, which every rank's Agree then returns: all ranks
// return the same cause at once. Exchange: the result is all contributions, which in a large world
// must be small.
//
// The tree's connections stay open, so that all ranks detect the death of one (watch.h).
#ifndef RAILHEAD_RUNTIME_BOOTSTRAP_BOOTSTRAP_H_
#define RAILHEAD_RUNTIME_BOOTSTRAP_BOOTSTRAP_H_

#include <cstdint>
#include <memory>
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
#include "runtime/bootstrap/handshake.h"
#include "runtime/bootstrap/handshake_server.h"
#include "runtime/bootstrap/links.h"
#include "runtime/bootstrap/meeting_place.h"
#include "runtime/bootstrap/node.h"
#include "runtime/bootstrap/secret.h"
#include "runtime/bootstrap/shared_listener.h"
#include "runtime/net/address.h"
#include "runtime/net/fd.h"

namespace railhead::bootstrap {

struct JoinOptions {
  int rank = 0;
  int world_size = 1;
  std::string host;  // address of rank 0; unused on rank 0
  int port = 0;
  // The place at which ranks find rank 0, instead of `host` and `port`.
  std::shared_ptr<MeetingPlace> place;
  // Rank 0 only: a listening socket, instead of that of the place.
  std::optional<net::Fd> listener;
  // Rank 0 only: instead, a socket that it shares with other rendezvous of this process.
  std::shared_ptr<SharedListener> shared_listener;
  std::string job;  // ranks of another job are rejected
  // So are those of another launch, or with other starters, as in Hello; both may be "".
  std::string launch;
  std::string starter;
  Secret secret;     // so are ranks without this secret
  std::string name;  // where this rank runs ("pod a on node b"), for messages; may be empty
  // Error that prevents this rank from taking part. Join reports it to the others, for a few
  // seconds, and returns it.
  absl::Status trouble;
  absl::Time deadline;
  Halt hopeless;  // error if not all ranks will come; applies until they have
  Halt aborted;   // error if this rank must stop; applies to every exchange, too
  Logger log;
};

// Not thread-safe. Movable.
class Bootstrap {
 public:
  // Returns when all ranks have arrived. DeadlineExceeded names the missing ranks; all ranks that
  // rank 0 can reach return the same text.
  static absl::StatusOr<Bootstrap> Join(JoinOptions options);

  // Sends `mine` to all ranks and returns all contributions, by rank. If any rank contributes an
  // error, all return its text and code. The bootstrap cannot be used after an error.
  absl::StatusOr<std::vector<std::string>> Exchange(absl::StatusOr<std::string> mine,
                                                    absl::Time deadline);

  // Sends `mine` to rank 0, where `decide` computes the result. Errors as for Exchange; all ranks
  // return an error of `decide`, too.
  absl::StatusOr<Node::Result> Agree(absl::StatusOr<std::string> mine, Node::Decide decide,
                                     absl::Time deadline) {
    return Agree(std::move(mine), std::move(decide), deadline, nullptr);
  }

  // Answer to other ranks' Watch::Locate of this rank.
  void SetPlace(std::string place) { node_.SetPlace(std::move(place)); }

  int rank() const { return node_.rank(); }
  int world_size() const { return node_.world_size(); }

  // Returns "rank 2 (pod a on node b)"; rank 0 knows all names, others their own and their tree
  // peers'.
  std::string Describe(int rank) const { return node_.Describe(rank); }

  // Secret of this rendezvous: derived from the job's secret, or else drawn by rank 0, in which
  // case eavesdroppers of the rendezvous know it.
  const Secret& session() const { return session_; }

  // This machine's address on the connection to the others; nullopt if world_size is 1.
  const std::optional<net::IpAddress>& local_address() const { return local_address_; }

  // Connections rejected during the rendezvous.
  uint64_t rejected_connections() const { return rejected_; }

  // Releases the tree to its next owner.
  std::pair<Node, Links> Take() && { return {std::move(node_), std::move(links_)}; }

 private:
  Bootstrap(int rank, int world_size) : node_(rank, world_size) {}

  // Returns the listener of rank 0.
  absl::StatusOr<ListeningSocket> ListenFor(JoinOptions& options);
  absl::Status HostJoin(JoinOptions& options);
  absl::Status GuestJoin(const JoinOptions& options);
  // Reports this rank's error to the ranks it can reach.
  void TellTrouble(JoinOptions& options);
  // Returns the connection to rank 0 after rank 0 has sent `welcome`.
  absl::StatusOr<Call> Arrive(const JoinOptions& options, uint16_t listen_port,
                              std::string* welcome);
  // Makes one attempt: dials, performs the handshake, and waits for the welcome while connected.
  Call TryToArrive(const JoinOptions& options, uint16_t listen_port, std::string* welcome);
  // Reports to the rank 0 that has the place that there are two. Returns its answer, or "".
  std::string TellOtherRankZero(const JoinOptions& options);
  absl::Status ConnectUp(int to, const std::optional<net::SocketAddress>& place, const Hello& hello,
                         const Secret& secret, absl::Time deadline);
  // Performs the tree's first exchange.
  absl::Status TryTree(absl::Time deadline, HandshakeServer* server);
  // With a server, also accepts ranks during the exchange.
  absl::StatusOr<Node::Result> Agree(absl::StatusOr<std::string> mine, Node::Decide decide,
                                     absl::Time deadline, HandshakeServer* server);
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
