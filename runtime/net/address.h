// SPDX-License-Identifier: Apache-2.0
//
// IP addresses as values, and the machine's own interfaces.
#ifndef RAILHEAD_RUNTIME_NET_ADDRESS_H_
#define RAILHEAD_RUNTIME_NET_ADDRESS_H_

#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace railhead::net {

// An IPv4 or IPv6 address. An IPv4 address inside IPv6 (::ffff:a.b.c.d) is held as IPv4, so that
// equal addresses compare equal however they arrived.
class IpAddress {
 public:
  IpAddress() = default;  // 0.0.0.0

  // From text such as "10.0.0.1" or "fe80::1".
  static absl::StatusOr<IpAddress> Parse(absl::string_view text);
  static absl::StatusOr<IpAddress> FromSockaddr(const sockaddr* address);
  // From 4 or 16 bytes in network order.
  static absl::StatusOr<IpAddress> FromBytes(absl::string_view bytes);

  bool is_v4() const { return is_v4_; }
  std::string Bytes() const;     // 4 or 16 bytes in network order
  std::string ToString() const;  // IPv6 without brackets
  // Fills `storage` and returns the used length.
  socklen_t ToSockaddr(uint16_t port, sockaddr_storage* storage) const;

  bool operator==(const IpAddress&) const = default;

 private:
  bool is_v4_ = true;
  std::array<uint8_t, 16> bytes_{};  // the first 4 count for IPv4
  uint32_t scope_ = 0;               // interface index of an IPv6 link-local address
};

// "10.0.0.1:80" or "[fe80::1]:80".
std::string HostPort(const IpAddress& address, uint16_t port);

// The address by which other machines most probably reach this one: IPv4 before IPv6, and both
// before link-local ones (169.254.0.0/16, then fe80::/10); the first among equals.
std::optional<IpAddress> MostReachable(absl::Span<const IpAddress> addresses);

// The most reachable address of the interface `name`. NotFound names the interfaces that there are.
absl::StatusOr<IpAddress> AddressOfInterface(absl::string_view name);

// The name of the interface that carries `address`; "" when none does.
std::string InterfaceOfAddress(const IpAddress& address);

// An Ethernet address.
using MacAddress = std::array<uint8_t, 6>;

// The addresses that other machines can use of the interfaces with this Ethernet address that are
// up, IPv4 before IPv6; IPv6 link-local ones are none. Only this process's network namespace
// counts.
std::vector<IpAddress> AddressesOfMac(const MacAddress& mac);

// All addresses of this network namespace that mean something elsewhere, of interfaces that are up.
std::vector<IpAddress> OwnAddresses();

// The most reachable address of all interfaces which are up and not loopback; 127.0.0.1 where there
// is none.
IpAddress LikelyPublicAddress();

}  // namespace railhead::net

#endif  // RAILHEAD_RUNTIME_NET_ADDRESS_H_
