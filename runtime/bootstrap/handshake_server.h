// SPDX-License-Identifier: Apache-2.0
//
// Handshake server of a rank: accepts connections and performs all handshakes concurrently. At a
// shared socket, it hands clients of other jobs over to their servers. Used by RendezvousServer and
// Bootstrap.
#ifndef RAILHEAD_RUNTIME_BOOTSTRAP_HANDSHAKE_SERVER_H_
#define RAILHEAD_RUNTIME_BOOTSTRAP_HANDSHAKE_SERVER_H_

#include <poll.h>

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "runtime/base/log.h"
#include "runtime/bootstrap/frame.h"
#include "runtime/bootstrap/handshake.h"
#include "runtime/bootstrap/secret.h"
#include "runtime/bootstrap/shared_listener.h"
#include "runtime/net/fd.h"

namespace railhead::bootstrap {

// Each client has a few seconds to prove that it knows the secret, independently of others: a
// malformed client, or one that sends nothing, only occupies one slot for that time.
class HandshakeServer {
 public:
  // Returns why an authenticated client is rejected, if it is.
  using Objection = std::function<std::optional<Refusal>(const Hello& hello)>;

  // `expected` is the maximum number of concurrent clients.
  HandshakeServer(ListeningSocket listener, HostHandshake::Identity self, Secret secret,
                  size_t expected, Objection objection, Logger log);

  // Adds descriptors to poll to `entries`, and lowers `deadline` to the next timeout.
  void Prepare(std::vector<pollfd>& entries, absl::Time& deadline) const;

  // Rejects all clients from now on, for this reason.
  void RefuseAll(std::string why) { self_.trouble = std::move(why); }

  // An authenticated client.
  struct Guest {
    Hello hello;
    net::Fd fd;
    FrameReader reader;
    std::string from;
  };
  // Serves connections that poll() reported. `entries` starts with those that Prepare added; do not
  // use the server in between.
  std::vector<Guest> Serve(const pollfd* entries);

  // Number of rejected connections, and a description of the last. Does not count clients of other
  // jobs at a shared socket.
  uint64_t rejected() const { return rejected_; }
  const std::string& last_rejection() const { return last_rejection_; }
  // Error of the last failed accept; OK if none failed.
  const absl::Status& trouble() const { return trouble_; }
  // A rejection with a reason.
  struct Rejection {
    std::string name;  // of the client, as it claims: "rank 1 (pod b)"
    std::string why;   // may begin with the name
  };
  // The last ones, by the rank that the client claimed; of as many ranks as are expected, and some.
  const std::map<uint32_t, Rejection>& turned_away() const { return turned_away_; }
  // Rejected ranks without any means of authentication (Refusal::cannot_prove).
  const std::set<uint32_t>& cannot_prove() const { return cannot_prove_; }

 private:
  struct Visitor {
    net::Fd fd;
    FrameReader reader;
    HostHandshake handshake;
    absl::Time patience;
    std::string from;
  };

  void TakeVisitors(std::vector<Guest>& guests);
  // Reads from a new connection, and keeps it if its handshake is not done.
  void Admit(SharedListener::Connection connection, std::vector<Guest>& guests);
  // Reads from one client. Returns true if it is done: accepted or rejected.
  bool ServeOne(Visitor& visitor, std::vector<Guest>& guests);
  // Hands a client of another job over to its server, or sends it a refusal after which it retries.
  void PassOn(Visitor& visitor, const Frame& hello);
  void Reject(const Visitor& visitor, absl::string_view why);
  // Returns the maximum number of clients in their handshake.
  size_t Most() const;

  ListeningSocket listener_;
  HostHandshake::Identity self_;
  Secret secret_;
  size_t expected_;
  Objection objection_;
  Logger log_;
  std::optional<SharedListener::Rendezvous> shared_;  // at a shared socket
  std::list<Visitor> visitors_;
  uint64_t rejected_ = 0;
  std::string last_rejection_;
  absl::Status trouble_;
  std::map<uint32_t, Rejection> turned_away_;
  std::set<uint32_t> cannot_prove_;
};

}  // namespace railhead::bootstrap

#endif  // RAILHEAD_RUNTIME_BOOTSTRAP_HANDSHAKE_SERVER_H_
