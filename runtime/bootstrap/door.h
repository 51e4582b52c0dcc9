// SPDX-License-Identifier: Apache-2.0
//
// Where a rank lets others in: it takes connections and shakes hands with all of them at once.
#ifndef RAILHEAD_RUNTIME_BOOTSTRAP_DOOR_H_
#define RAILHEAD_RUNTIME_BOOTSTRAP_DOOR_H_

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
#include "runtime/net/fd.h"

namespace railhead::bootstrap {

// Everybody has a few seconds to prove that he knows the secret, and nobody waits for anybody else:
// a silent or babbling stranger costs one slot for a while.
class Door {
 public:
  // Why a guest that has proven to be of this job is not taken all the same.
  using Objection = std::function<std::optional<Refusal>(const Hello& hello)>;

  // `expected` is how many guests may come at once.
  Door(net::Fd listener, HostHandshake::Identity self, Secret secret, size_t expected,
       Objection objection, Logger log)
      : listener_(std::move(listener)),
        self_(std::move(self)),
        secret_(std::move(secret)),
        expected_(expected),
        objection_(std::move(objection)),
        log_(std::move(log)) {}

  // Adds what is to be polled to `entries`, and moves the deadline to where somebody's time is up.
  void Prepare(std::vector<pollfd>& entries, absl::Time& deadline) const;

  // From now on everybody is turned away for this reason.
  void RefuseAll(std::string why) { self_.trouble = std::move(why); }

  // Who has come in. Connections know each other's ranks from here on.
  struct Guest {
    Hello hello;
    net::Fd fd;
    FrameReader reader;
    std::string from;
  };
  // Serves those that the poll has found ready. `entries` begins with what Prepare has added, and
  // nothing else has happened to the door in between.
  std::vector<Guest> Serve(const pollfd* entries);

  // How many connections were turned away, and something about the last of them.
  uint64_t rejected() const { return rejected_; }
  const std::string& last_rejection() const { return last_rejection_; }
  // Why connections could not be taken, the last time that it was so; OK if they always could.
  const absl::Status& trouble() const { return trouble_; }
  // The last rejections with a reason to tell, by the rank that the guest said to be.
  const std::map<uint32_t, std::string>& turned_away() const { return turned_away_; }
  // Those of them that have nothing to prove themselves with (Refusal::cannot_prove).
  const std::set<uint32_t>& cannot_prove() const { return cannot_prove_; }

 private:
  struct Visitor {
    net::Fd fd;
    FrameReader reader;
    HostHandshake handshake;
    absl::Time patience;
    std::string from;
  };

  void TakeVisitors();
  // Reads from one visitor. Returns whether it has ceased to be one: let in or turned away.
  bool ServeOne(Visitor& visitor, std::vector<Guest>& guests);
  void Reject(const Visitor& visitor, absl::string_view why);

  net::Fd listener_;
  HostHandshake::Identity self_;
  Secret secret_;
  size_t expected_;
  Objection objection_;
  Logger log_;
  std::list<Visitor> visitors_;
  uint64_t rejected_ = 0;
  std::string last_rejection_;
  absl::Status trouble_;
  std::map<uint32_t, std::string> turned_away_;
  std::set<uint32_t> cannot_prove_;
};

}  // namespace railhead::bootstrap

#endif  // RAILHEAD_RUNTIME_BOOTSTRAP_DOOR_H_
