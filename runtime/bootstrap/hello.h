// SPDX-License-Identifier: Apache-2.0
//
// Encoding of handshake messages, without any decisions.
#ifndef RAILHEAD_RUNTIME_BOOTSTRAP_HELLO_H_
#define RAILHEAD_RUNTIME_BOOTSTRAP_HELLO_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/net/socket.h"

namespace railhead::bootstrap {

// Increase it whenever ranks of different builds could misunderstand each other.
inline constexpr uint32_t kProtocolVersion = 13;

// Maximum size of Hello::launch.
inline constexpr size_t kLaunchLimit = 300;

// Maximum payload of a handshake, so that unauthenticated clients cannot exhaust memory.
inline constexpr size_t kHelloLimit = 2048;

// Client to server: identity, and the rank to reach.
struct Hello {
  uint32_t version = kProtocolVersion;
  uint32_t world_size = 0;
  uint32_t rank = 0;
  uint32_t host_rank = 0;
  bool has_secret = false;  // it was given a secret file
  std::string job;
  std::string name;                              // where the rank runs, for messages
  std::string nonce;                             // kNonceSize random bytes
  std::optional<net::SocketAddress> listens_at;  // listening address of this rank
  std::string trouble = "";                      // why it cannot take part; "" if it can
  // The launcher's name for this job: the same on all its ranks, different for every other job; ""
  // if the launcher has none.
  std::string launch = "";
  std::string starter = "";  // see starter.h; "" if the job is known otherwise
};

std::string EncodeHello(const Hello& hello);
// Reads only the fields before `host_rank` for other versions. Texts are made printable, here and
// below: they are used in messages and logs.
absl::StatusOr<Hello> ParseHello(absl::string_view payload);

// Server to client: request for proof.
struct Challenge {
  std::string name;   // where the server runs, for messages
  std::string nonce;  // kNonceSize random bytes
};

std::string EncodeChallenge(const Challenge& challenge);
absl::StatusOr<Challenge> ParseChallenge(absl::string_view payload);

// Server to client: rejection.
struct Refusal {
  // A retry is useless. False for the old connection of a restarted rank, which will close, and for
  // a stale address, which will be updated; true for a wrong WORLD_SIZE.
  bool final = false;
  std::string text;
  // The client has no means of authentication that the server could accept. Not sent.
  bool cannot_prove = false;
  // The rendezvous of the client's job is not open at this address, and may be soon.
  bool not_open = false;
};

std::string EncodeRefusal(const Refusal& refusal);
absl::StatusOr<Refusal> ParseRefusal(absl::string_view payload);

}  // namespace railhead::bootstrap

#endif  // RAILHEAD_RUNTIME_BOOTSTRAP_HELLO_H_
