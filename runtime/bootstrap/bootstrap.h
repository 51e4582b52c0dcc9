// SPDX-License-Identifier: Apache-2.0
//
// How the ranks of a job find each other and agree: a star around rank 0.
//
// Join: rank 0 listens, the others dial it until it answers, introduce themselves and wait until
// everyone is there. Whoever else connects (a scraper, a port scan, a rank of another job) is
// turned away, counted, and delays nobody.
//
// Exchange: every rank gives some bytes and gets everybody's. A rank that cannot go on gives its
// reason instead, and then every rank's Exchange returns that reason: nobody is left waiting and
// everybody names the same culprit.
//
// The connections stay open afterwards, so that a rank's death is noticed by all (see watch.h).
#ifndef RAILHEAD_RUNTIME_BOOTSTRAP_BOOTSTRAP_H_
#define RAILHEAD_RUNTIME_BOOTSTRAP_BOOTSTRAP_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/base/log.h"
#include "runtime/bootstrap/frame.h"
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
  std::string name;  // where this rank runs ("pod a on node b"), for messages; may be empty
  absl::Time deadline;
  Logger log;
};

// One connection of the star: on rank 0 there is one for every other rank, elsewhere one to rank 0.
struct Member {
  int rank = 0;
  net::Fd fd;
  FrameReader reader;
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

  int rank() const { return rank_; }
  int world_size() const { return static_cast<int>(names_.size()); }

  // "rank 2 (pod a on node b)".
  std::string Describe(int rank) const;

  // This machine's address on the connection to the others; nullopt in a world of one.
  const std::optional<net::IpAddress>& local_address() const { return local_address_; }

  // Connections turned away while the ranks gathered (rank 0 only, 0 elsewhere).
  uint64_t rejected_connections() const { return rejected_; }

  // Hands the connections over to whoever watches them from now on.
  std::vector<Member> TakeMembers() { return std::move(members_); }

 private:
  Bootstrap() = default;

  absl::Status HostJoin(JoinOptions& options);
  absl::Status GuestJoin(const JoinOptions& options);
  absl::StatusOr<std::vector<std::string>> HostExchange(absl::StatusOr<std::string> mine,
                                                        absl::Time deadline);
  absl::StatusOr<std::vector<std::string>> GuestExchange(absl::StatusOr<std::string> mine,
                                                         absl::Time deadline);
  absl::Status HostFail(const absl::Status& verdict);

  int rank_ = 0;
  std::vector<std::string> names_;  // by rank
  std::vector<Member> members_;
  std::optional<net::IpAddress> local_address_;
  uint64_t rejected_ = 0;
};

// The name of a rank in messages: "rank 2 (pod a on node b)", or "rank 2".
std::string DescribeRank(int rank, absl::string_view name);

// An error as the payload of a kFail frame, and back.
std::string EncodeFailure(const absl::Status& status);
absl::Status ParseFailure(absl::string_view payload);

}  // namespace railhead::bootstrap

#endif  // RAILHEAD_RUNTIME_BOOTSTRAP_BOOTSTRAP_H_
