// SPDX-License-Identifier: Apache-2.0
//
// What ranks tell rank 0 while a communicator starts, and what it answers (Bootstrap::Agree). Rank
// 0 alone knows all reports; it decides (decision.h) and tells everybody what all must know, and
// each rank what that one alone needs: of the others' addresses only those that it wants to know.
//
// So of a world of n ranks a rank learns the same few hundred bytes whatever n is, and besides
// - which ranks share memory: a few bytes for each place, as runs of ranks;
// - rejoin addresses: where each rank can be met again, 6 bytes over IPv4. They are needed when
// ranks are lost
//   and nobody can be asked any more.
//
// Pure.
#ifndef RAILHEAD_RUNTIME_COMM_SETUP_AGREEMENT_H_
#define RAILHEAD_RUNTIME_COMM_SETUP_AGREEMENT_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/bootstrap/node.h"
#include "runtime/comm/setup/decision.h"

namespace railhead::comm {

// What others must know of a rank to reach it.
struct Whereabouts {
  std::string name;                    // "rank 2 (pod a on node b)"
  std::vector<std::string> addresses;  // by rail

  bool operator==(const Whereabouts&) const = default;
};
std::string Encode(const Whereabouts& whereabouts);
absl::StatusOr<Whereabouts> ParseWhereabouts(absl::string_view bytes);

// What a rank says in one round.
struct Statement {
  std::string report;                  // an encoded RankReport; "" if it is as before
  std::vector<std::string> addresses;  // where others reach it
  std::vector<int> wanted;             // ranks whose addresses it wants to know

  bool operator==(const Statement&) const = default;
};
std::string Encode(const Statement& statement);
absl::StatusOr<Statement> ParseStatement(absl::string_view bytes);

// What all ranks know of all.
struct Agreement {
  Decision decision;
  int pods = 1;                               // in which the ranks are
  std::vector<RailReport> usual;              // rate and MTU that most ranks have, by rail
  std::vector<std::string> rejoin_addresses;  // by rank; see RankReport
  std::string key;                            // for who meets at them

  bool operator==(const Agreement&) const = default;
};
std::string Encode(const Agreement& agreement);
absl::StatusOr<Agreement> ParseAgreement(absl::string_view bytes, int world_size);

// What one rank is told besides.
struct Particulars {
  int partner = 0;                    // with whom it measures the rails (partners.h)
  std::map<int, Whereabouts> wanted;  // of ranks that it wanted to know of

  bool operator==(const Particulars&) const = default;
};
std::string Encode(const Particulars& particulars);
absl::StatusOr<Particulars> ParseParticulars(absl::string_view bytes, int world_size);

// Rank 0's part.
class Coordinator {
 public:
  // `key` as in Agreement.
  explicit Coordinator(std::string key) : key_(std::move(key)) {}

  // From what all ranks have said, by rank, to what they are told. The text for all is "" when no
  // report has changed. An error is the end of the job: Decide's, or a statement is malformed.
  absl::StatusOr<bootstrap::Node::Answer> Answer(const std::vector<std::string>& statements);

 private:
  std::string key_;
  std::vector<RankReport> reports_;  // by rank
  std::vector<int> partners_;
};

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_SETUP_AGREEMENT_H_
