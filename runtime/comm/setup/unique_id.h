// SPDX-License-Identifier: Apache-2.0
//
// Contents of the 128 bytes of an rhUniqueId.
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
  std::string key;  // random; ranks prove at the rendezvous that they know it
  // Descriptor of the listening socket. Valid in the process that made the id, and in its forks; so
  // that process needs no table of open ids.
  int listener = -1;
};

// Opens a listening socket on all addresses; the id contains `address`. The socket stays open until
// TakeListener or the end of the process.
absl::StatusOr<UniqueId> MakeUniqueId(const net::IpAddress& address);

// Exactly kUniqueIdSize bytes.
std::string Encode(const UniqueId& id);
absl::StatusOr<UniqueId> ParseUniqueId(absl::string_view bytes);

// Returns the id's socket in the process that made it; nullopt in others.
std::optional<net::Fd> TakeListener(const UniqueId& id);

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_SETUP_UNIQUE_ID_H_
