// SPDX-License-Identifier: Apache-2.0
//
// Wire format of the part of PyTorch's TCPStore that AgentStore uses: a connection begins with a
// greeting, and then carries queries and their answers in order. Integers have the byte order of
// both hosts, which is little-endian. Pure; the answers are untrusted.
//
//   greeting   0x00, the number 0x3C85F7CE                no answer
//   SET        0x01, key, value                           no answer
//   GET        0x03, key                                  value
//   CHECK      0x05, the number of keys, keys             0x00: the store has them, 0x01: not all
//   WAIT       0x06, the number of keys, keys             0x00, as soon as the store has them
//
// A key or value is its size in 8 bytes and its bytes; the number of keys has 8 bytes, too.
#ifndef RAILHEAD_RUNTIME_BOOTSTRAP_AGENT_STORE_WIRE_H_
#define RAILHEAD_RUNTIME_BOOTSTRAP_AGENT_STORE_WIRE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/net/address.h"

namespace railhead::bootstrap {

std::string StoreGreeting();
std::string StoreSet(absl::string_view key, absl::string_view value);
std::string StoreGet(absl::string_view key);
std::string StoreCheck(absl::string_view key);
std::string StoreWait(absl::string_view key);

// Maximum size of a value that ParseStoreValue accepts.
inline constexpr size_t kStoreValueLimit = 256;

// These read an answer that begins with `bytes`. nullopt: more bytes are needed. Unimplemented: the
// other side uses another protocol.
// Returns whether the store has the key.
absl::StatusOr<std::optional<bool>> ParseStoreCheck(absl::string_view bytes);
// Returns true: the store has it now.
absl::StatusOr<std::optional<bool>> ParseStoreWait(absl::string_view bytes);
absl::StatusOr<std::optional<std::string>> ParseStoreValue(absl::string_view bytes);

// The value that rank 0 publishes.
struct StoredAddress {
  uint16_t port = 0;
  // nullopt: rank 0 runs on the host of the store.
  std::optional<net::IpAddress> address;

  bool operator==(const StoredAddress&) const = default;
};

std::string EncodeStoredAddress(const StoredAddress& stored);
// InvalidArgument if it is not such a value.
absl::StatusOr<StoredAddress> ParseStoredAddress(absl::string_view value);

}  // namespace railhead::bootstrap

#endif  // RAILHEAD_RUNTIME_BOOTSTRAP_AGENT_STORE_WIRE_H_
