// SPDX-License-Identifier: Apache-2.0
//
// How a rank introduces itself to rank 0, and who is let in. Pure: bytes and values only.
#ifndef RAILHEAD_RUNTIME_BOOTSTRAP_HELLO_H_
#define RAILHEAD_RUNTIME_BOOTSTRAP_HELLO_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace railhead::bootstrap {

// Raised whenever ranks of different builds could misunderstand each other.
inline constexpr uint32_t kProtocolVersion = 1;

// A hello is never larger than this, so that strangers cannot make rank 0 hoard bytes.
inline constexpr size_t kHelloLimit = 2048;

struct Hello {
  uint32_t version = kProtocolVersion;
  uint32_t world_size = 0;
  uint32_t rank = 0;
  std::string job;
  std::string name;  // where the rank runs, for messages
};

std::string EncodeHello(const Hello& hello);
absl::StatusOr<Hello> ParseHello(absl::string_view payload);

// Why rank 0 does not take somebody.
struct Refusal {
  // Whether trying again may help: the old connection of a restarted rank disappears, a stale
  // address comes to point at the right pod. A wrong WORLD_SIZE stays wrong.
  bool final = false;
  std::string text;
};

std::string EncodeRefusal(const Refusal& refusal);
absl::StatusOr<Refusal> ParseRefusal(absl::string_view payload);

// Rank 0's decision; nullopt lets the rank in. `present[r]` says whether rank r is already here.
std::optional<Refusal> Judge(const Hello& hello, absl::string_view job,
                             const std::vector<bool>& present);

}  // namespace railhead::bootstrap

#endif  // RAILHEAD_RUNTIME_BOOTSTRAP_HELLO_H_
