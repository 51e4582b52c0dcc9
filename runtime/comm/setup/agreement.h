// SPDX-License-Identifier: Apache-2.0
//
// Messages between the ranks and rank 0 at the start of a communicator (Bootstrap::Agree). Only
// rank 0 receives all reports. It decides (decision.h), and sends to all ranks what all need, and
// to each rank what only that rank needs: of the other ranks' addresses only the requested ones.
//
// So in a world of n ranks, the size of what a rank receives is independent of n, a few hundred
// bytes, except for
//
//  - the ranks that share memory: a few bytes for each place, as runs of ranks;
//  - rejoin addresses: where each rank listens for ranks that meet again, 6 bytes over IPv4. Ranks
//    need them after a loss of ranks, when rank 0 may not be reachable.
//
// Pure. Used by setup.h.
#ifndef RAILHEAD_RUNTIME_COMM_SETUP_AGREEMENT_H_
#define RAILHEAD_RUNTIME_COMM_SETUP_AGREEMENT_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/bootstrap/node.h"
#include "runtime/comm/setup/decision.h"

namespace railhead::comm {

// The name and addresses of a rank, with which other ranks connect to it.
struct Whereabouts {
  std::string name;                    // "rank 2 (pod a on node b)"
  std::vector<std::string> addresses;  // by rail
  uint64_t closed = 0;                 // rails that it cannot open now, as bits

  bool operator==(const Whereabouts&) const = default;
};
std::string Encode(const Whereabouts& whereabouts);
absl::StatusOr<Whereabouts> ParseWhereabouts(absl::string_view bytes);

// A rank's contribution to one round.
struct Statement {
  std::string report;                  // an encoded RankReport; "" if unchanged
  std::vector<std::string> addresses;  // where other ranks connect to it
  uint64_t closed = 0;                 // see Whereabouts
  std::vector<int> wanted;             // ranks whose addresses it requests

  bool operator==(const Statement&) const = default;
};
std::string Encode(const Statement& statement);
absl::StatusOr<Statement> ParseStatement(absl::string_view bytes);

// Result of a round for all ranks.
struct Agreement {
  Decision decision;
  int pods = 1;                               // number of pods of these ranks
  std::vector<RailReport> usual;              // rate and MTU that most ranks have, by rail
  std::vector<std::string> rejoin_addresses;  // by rank; see RankReport
  std::string key;                            // proves membership at the rejoin addresses

  bool operator==(const Agreement&) const = default;
};
std::string Encode(const Agreement& agreement);
absl::StatusOr<Agreement> ParseAgreement(absl::string_view bytes, int world_size);

// Result of a round for one rank.
struct Particulars {
  int partner = 0;                    // the rank with which it measures the rails (partners.h)
  std::map<int, Whereabouts> wanted;  // of the ranks that it requested

  bool operator==(const Particulars&) const = default;
};
std::string Encode(const Particulars& particulars);
absl::StatusOr<Particulars> ParseParticulars(absl::string_view bytes, int world_size);

// Rank 0's part.
class Coordinator {
 public:
  // `key`: see Agreement.
  explicit Coordinator(std::string key) : key_(std::move(key)) {}

  // Computes the results from all contributions, by rank. The result for all ranks is "" if no
  // report has changed. An error fails the job: an error of Decide, or a malformed contribution.
  absl::StatusOr<bootstrap::Node::Answer> Answer(const std::vector<std::string>& statements);

 private:
  std::string key_;
  std::vector<RankReport> reports_;  // by rank
  std::vector<int> partners_;
};

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_SETUP_AGREEMENT_H_
