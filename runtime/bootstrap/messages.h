// SPDX-License-Identifier: Apache-2.0
//
// Messages between authenticated ranks, and their encoding.
#ifndef RAILHEAD_RUNTIME_BOOTSTRAP_MESSAGES_H_
#define RAILHEAD_RUNTIME_BOOTSTRAP_MESSAGES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/net/socket.h"

namespace railhead::bootstrap {

// Maximum contribution of one rank to an exchange, in bytes.
inline constexpr size_t kPartLimit = size_t{1} << 20;
// Maximum of all contributions together, and of the result, in bytes.
inline constexpr size_t kAllLimit = size_t{1} << 30;

// kWelcome: all ranks have arrived. No address for rank 0, which is connected already.
struct Welcome {
  std::string session;  // kNonceSize random bytes, shared by all ranks of this rendezvous
  std::optional<net::SocketAddress> parent;
  std::optional<net::SocketAddress> guardian;
};
std::string EncodeWelcome(const Welcome& welcome);
absl::StatusOr<Welcome> ParseWelcome(absl::string_view payload);

// Encodes an address; "" for none.
std::string EncodePlace(const std::optional<net::SocketAddress>& place);
absl::StatusOr<std::optional<net::SocketAddress>> ParsePlace(absl::string_view bytes);
inline constexpr size_t kPlaceLimit = 18;

// kGather: contributions to the exchange `round`.
struct Parts {
  uint32_t round = 0;
  std::vector<std::string> parts;
};
std::string EncodeParts(const Parts& parts);
absl::StatusOr<Parts> ParseParts(absl::string_view payload, size_t count);

// kAll: the root's result. `for_each` is in the order of the receiver's Subtree, or empty.
struct Answers {
  uint32_t round = 0;
  std::string for_all;
  std::vector<std::string> for_each;
};
std::string EncodeAnswers(const Answers& answers);
absl::StatusOr<Answers> ParseAnswers(absl::string_view payload, size_t count);

// kLocate: `asker` requests the address of `rank`. kLocated: the rank's answer.
inline constexpr size_t kLocationLimit = 8192;
struct Location {
  int asker = 0;
  int rank = 0;
  std::string place;  // of kLocated

  bool operator==(const Location&) const = default;
};
std::string EncodeLocation(const Location& location);
absl::StatusOr<Location> ParseLocation(absl::string_view payload, int world_size);

// kMissing: `rank` is alive, and waits for these of its children.
struct Missing {
  int rank = 0;
  std::vector<int> children;
};
std::string EncodeMissing(const Missing& missing);
absl::StatusOr<Missing> ParseMissing(absl::string_view payload, int world_size);

// kQuestion: status query to all ranks below. Each rank numbers its queries from 1.
struct Question {
  int asker = 0;
  uint32_t number = 0;

  bool operator==(const Question&) const = default;
};
std::string EncodeQuestion(const Question& question);
absl::StatusOr<Question> ParseQuestion(absl::string_view payload, int world_size);

// kTestimony: the replies, by rank.
inline constexpr size_t kAnswerLimit = 512;
struct Testimony {
  Question question;
  std::map<int, std::string> answers;
};
std::string EncodeTestimony(const Testimony& testimony);
absl::StatusOr<Testimony> ParseTestimony(absl::string_view payload, int world_size);

// kReport: the report of the querying rank.
inline constexpr size_t kReportLimit = 12288;
struct InquiryReport {
  Question question;
  std::string text;
};
std::string EncodeInquiryReport(const InquiryReport& report);
absl::StatusOr<InquiryReport> ParseInquiryReport(absl::string_view payload, int world_size);

// kGone: a rank whose connection to a tree peer ended, with its name.
struct Gone {
  int rank = 0;
  std::string name;  // "rank 2 (pod a on node b)"

  bool operator==(const Gone&) const = default;
};
std::string EncodeGone(const Gone& gone);
absl::StatusOr<Gone> ParseGone(absl::string_view payload, int world_size);

// kFail: why the job failed.
std::string EncodeFailure(const absl::Status& status);
absl::Status ParseFailure(absl::string_view payload);

}  // namespace railhead::bootstrap

#endif  // RAILHEAD_RUNTIME_BOOTSTRAP_MESSAGES_H_
