// SPDX-License-Identifier: Apache-2.0
//
// What is inside the 128 bytes of an rhUniqueId.
#ifndef RAILHEAD_RUNTIME_COMM_SETUP_UNIQUE_ID_H_
#define RAILHEAD_RUNTIME_COMM_SETUP_UNIQUE_ID_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/net/address.h"
#include "runtime/net/fd.h"

namespace railhead::comm {

inline constexpr size_t kUniqueIdSize = 128;

struct UniqueId {
  net::IpAddress address;
  uint16_t port = 0;
  std::string key;  // random; what the ranks prove to know at the rendezvous
  // The listening socket, as a number that means something in the process that made the id and in
  // its forks. That process needs no table of open ids this way.
  int listener = -1;
};

// Opens a listening socket on all addresses and names it by `address`. The socket stays open until
// TakeListener, or the end of the process.
absl::StatusOr<UniqueId> MakeUniqueId(const net::IpAddress& address);

// Exactly kUniqueIdSize bytes.
std::string Encode(const UniqueId& id);
absl::StatusOr<UniqueId> ParseUniqueId(absl::string_view bytes);

// The id's socket, if this is the process that made it; nullopt elsewhere.
std::optional<net::Fd> TakeListener(const UniqueId& id);

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_SETUP_UNIQUE_ID_H_
