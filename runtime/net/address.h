// SPDX-License-Identifier: Apache-2.0
//
// IP addresses as values, and the machine's interfaces.
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

// An IPv4 or IPv6 address. IPv4-mapped IPv6 (::ffff:a.b.c.d) is stored as IPv4, so that equal
// addresses compare equal.
class IpAddress {
 public:
  IpAddress() = default;  // 0.0.0.0

  // Parses text such as "10.0.0.1" or "fe80::1".
  static absl::StatusOr<IpAddress> Parse(absl::string_view text);
  static absl::StatusOr<IpAddress> FromSockaddr(const sockaddr* address);
  // Reads 4 or 16 bytes in network order.
  static absl::StatusOr<IpAddress> FromBytes(absl::string_view bytes);

  bool is_v4() const { return is_v4_; }
  std::string Bytes() const;     // 4 or 16 bytes in network order
  std::string ToString() const;  // IPv6 without brackets
  // Fills `storage` and returns the used length.
  socklen_t ToSockaddr(uint16_t port, sockaddr_storage* storage) const;

  bool operator==(const IpAddress&) const = default;

 private:
  bool is_v4_ = true;
  std::array<uint8_t, 16> bytes_{};  // IPv4 uses the first 4
  uint32_t scope_ = 0;               // interface index of an IPv6 link-local address
};

// Returns "10.0.0.1:80" or "[fe80::1]:80".
std::string HostPort(const IpAddress& address, uint16_t port);

// Returns the address most likely reachable from other machines: IPv4 before IPv6, and both before
// link-local ones (169.254.0.0/16, then fe80::/10); the first among equals.
std::optional<IpAddress> MostReachable(absl::Span<const IpAddress> addresses);

// Returns the most reachable address of the interface `name`. NotFound lists the existing
// interfaces.
absl::StatusOr<IpAddress> AddressOfInterface(absl::string_view name);

// One that is down may have addresses.
struct InterfaceState {
  bool exists = false;
  bool up = false;
  std::vector<IpAddress> addresses;
};
InterfaceState FindInterface(absl::string_view name);

// Returns the name of the interface with `address`; "" if there is none.
std::string InterfaceOfAddress(const IpAddress& address);

// Returns true if another interface that is up has an address in a subnet that overlaps with the
// one of `address`. False for link-local addresses, which each interface has.
bool SharesSubnet(const IpAddress& address);

// An Ethernet address.
using MacAddress = std::array<uint8_t, 6>;

// Returns the addresses usable by other machines of interfaces with this Ethernet address that are
// up, IPv4 before IPv6, without IPv6 link-local ones. Only in this process's network namespace.
std::vector<IpAddress> AddressesOfMac(const MacAddress& mac);

// Returns all addresses of this network namespace with more than local meaning, of interfaces that
// are up.
std::vector<IpAddress> OwnAddresses();

// Returns the most reachable address of all interfaces that are up, except loopback; 127.0.0.1 if
// there is none.
IpAddress LikelyPublicAddress();

}  // namespace railhead::net

#endif  // RAILHEAD_RUNTIME_NET_ADDRESS_H_
