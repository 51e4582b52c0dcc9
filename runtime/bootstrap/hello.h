// SPDX-License-Identifier: Apache-2.0
//
// What is said in a handshake, as bytes. Nothing here decides or believes anything.
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

// Raised whenever ranks of different builds could misunderstand each other.
inline constexpr uint32_t kProtocolVersion = 7;

// No payload of a handshake is larger than this, so that strangers cannot make a rank hoard bytes.
inline constexpr size_t kHelloLimit = 2048;

// Guest to host: who I am, and whom I want to reach.
struct Hello {
  uint32_t version = kProtocolVersion;
  uint32_t world_size = 0;
  uint32_t rank = 0;
  uint32_t host_rank = 0;
  bool has_secret = false;  // whether it was given a secret file
  std::string job;
  std::string name;                        // where the rank runs, for messages
  std::string nonce;                       // kNonceSize random bytes
  std::optional<net::SocketAddress> door;  // where this rank listens itself
  std::string trouble = "";                // why it cannot take part; "" if it can
};

// Texts come from whoever connects, and end in messages and logs: they stay on one line.
std::string OnOneLine(std::string text);

std::string EncodeHello(const Hello& hello);
// Of another version only the numbers before `host_rank` are read.
absl::StatusOr<Hello> ParseHello(absl::string_view payload);

// Host to guest: prove that you know the secret.
struct Challenge {
  std::string name;   // where the host runs, for messages
  std::string nonce;  // kNonceSize random bytes
};

std::string EncodeChallenge(const Challenge& challenge);
absl::StatusOr<Challenge> ParseChallenge(absl::string_view payload);

// Host to guest: why I do not take you.
struct Refusal {
  // Whether trying again is of no use: the old connection of a restarted rank disappears, a stale
  // address comes to point at the right pod. A wrong WORLD_SIZE stays wrong.
  bool final = false;
  std::string text;
  // Whether the guest itself has nothing to prove itself with that the host could accept. Does not
  // travel.
  bool cannot_prove = false;
};

std::string EncodeRefusal(const Refusal& refusal);
absl::StatusOr<Refusal> ParseRefusal(absl::string_view payload);

}  // namespace railhead::bootstrap

#endif  // RAILHEAD_RUNTIME_BOOTSTRAP_HELLO_H_
