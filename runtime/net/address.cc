// SPDX-License-Identifier: Apache-2.0
#include "runtime/net/address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netpacket/packet.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace railhead::net {
namespace {

constexpr std::array<uint8_t, 12> kMappedPrefix = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

// Calls `visit` for every interface address that is up, with its flags.
void ForEachAddress(
    absl::FunctionRef<void(absl::string_view name, unsigned flags, const IpAddress&)> visit) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || (entry->ifa_flags & IFF_UP) == 0) continue;
    const absl::StatusOr<IpAddress> address = IpAddress::FromSockaddr(entry->ifa_addr);
    if (address.ok()) visit(entry->ifa_name, entry->ifa_flags, *address);
  }
  freeifaddrs(list);
}

// Of 169.254.0.0/16 or fe80::/10.
bool IsLinkLocal(const IpAddress& address) {
  const std::string bytes = address.Bytes();
  const auto first = static_cast<uint8_t>(bytes[0]);
  const auto second = static_cast<uint8_t>(bytes[1]);
  return address.is_v4() ? first == 169 && second == 254 : first == 0xfe && second >> 6U == 2;
}

// A link-local address of IPv6 means nothing without its interface. One of IPv4 reaches the hosts
// on the same wire.
bool MeansSomethingElsewhere(const IpAddress& address) {
  return address.is_v4() || !IsLinkLocal(address);
}

// The names of the interfaces that have this Ethernet address.
std::set<std::string> InterfacesOfMac(const MacAddress& mac) {
  std::set<std::string> names;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return names;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != AF_PACKET) continue;
    sockaddr_ll hardware;
    std::memcpy(&hardware, entry->ifa_addr, sizeof hardware);
    if (hardware.sll_halen == mac.size() &&
        std::equal(mac.begin(), mac.end(), std::begin(hardware.sll_addr))) {
      names.insert(entry->ifa_name);
    }
  }
  freeifaddrs(list);
  return names;
}

}  // namespace

absl::StatusOr<IpAddress> IpAddress::Parse(absl::string_view text) {
  const std::string copy(text);
  std::array<uint8_t, 16> bytes{};
  if (inet_pton(AF_INET, copy.c_str(), bytes.data()) == 1) {
    return FromBytes(absl::string_view(reinterpret_cast<const char*>(bytes.data()), 4));
  }
  if (inet_pton(AF_INET6, copy.c_str(), bytes.data()) == 1) {
    return FromBytes(absl::string_view(reinterpret_cast<const char*>(bytes.data()), 16));
  }
  return absl::InvalidArgumentError(absl::StrCat("'", text, "' is not an IP address"));
}

absl::StatusOr<IpAddress> IpAddress::FromSockaddr(const sockaddr* address) {
  if (address->sa_family == AF_INET) {
    sockaddr_in v4;
    std::memcpy(&v4, address, sizeof v4);
    return FromBytes(absl::string_view(reinterpret_cast<const char*>(&v4.sin_addr), 4));
  }
  if (address->sa_family == AF_INET6) {
    sockaddr_in6 v6;
    std::memcpy(&v6, address, sizeof v6);
    absl::StatusOr<IpAddress> result =
        FromBytes(absl::string_view(reinterpret_cast<const char*>(&v6.sin6_addr), 16));
    if (result.ok() && IN6_IS_ADDR_LINKLOCAL(&v6.sin6_addr)) result->scope_ = v6.sin6_scope_id;
    return result;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("address family ", address->sa_family, " is neither IPv4 nor IPv6"));
}

absl::StatusOr<IpAddress> IpAddress::FromBytes(absl::string_view bytes) {
  IpAddress result;
  if (bytes.size() == 16 &&
      std::memcmp(bytes.data(), kMappedPrefix.data(), kMappedPrefix.size()) == 0) {
    bytes.remove_prefix(kMappedPrefix.size());
  }
  if (bytes.size() != 4 && bytes.size() != 16) {
    return absl::InvalidArgumentError(
        absl::StrCat("an IP address has 4 or 16 bytes, not ", bytes.size()));
  }
  result.is_v4_ = bytes.size() == 4;
  std::memcpy(result.bytes_.data(), bytes.data(), bytes.size());
  return result;
}

std::string IpAddress::Bytes() const {
  return std::string(reinterpret_cast<const char*>(bytes_.data()), is_v4_ ? 4 : 16);
}

std::string IpAddress::ToString() const {
  std::array<char, INET6_ADDRSTRLEN> text{};
  inet_ntop(is_v4_ ? AF_INET : AF_INET6, bytes_.data(), text.data(), text.size());
  return text.data();
}

socklen_t IpAddress::ToSockaddr(uint16_t port, sockaddr_storage* storage) const {
  std::memset(storage, 0, sizeof *storage);
  if (is_v4_) {
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    std::memcpy(&v4.sin_addr, bytes_.data(), 4);
    std::memcpy(storage, &v4, sizeof v4);
    return sizeof v4;
  }
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(port);
  v6.sin6_scope_id = scope_;
  std::memcpy(&v6.sin6_addr, bytes_.data(), 16);
  std::memcpy(storage, &v6, sizeof v6);
  return sizeof v6;
}

std::string HostPort(const IpAddress& address, uint16_t port) {
  if (address.is_v4()) return absl::StrCat(address.ToString(), ":", port);
  return absl::StrCat("[", address.ToString(), "]:", port);
}

absl::StatusOr<IpAddress> AddressOfInterface(absl::string_view name) {
  std::vector<IpAddress> addresses;
  std::set<std::string> names;
  ForEachAddress([&](absl::string_view candidate, unsigned /*flags*/, const IpAddress& address) {
    names.insert(std::string(candidate));
    if (candidate == name) addresses.push_back(address);
  });
  if (const auto best = MostReachable(addresses); best.has_value()) return *best;
  return absl::NotFoundError(
      absl::StrCat("no interface '", name,
                   "' is up with an IP address; available: ", absl::StrJoin(names, ", ")));
}

InterfaceState FindInterface(absl::string_view name) {
  InterfaceState found;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return found;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_name != name) continue;
    found.exists = true;
    found.up = found.up || (entry->ifa_flags & IFF_UP) != 0;
    if (entry->ifa_addr == nullptr) continue;
    const absl::StatusOr<IpAddress> address = IpAddress::FromSockaddr(entry->ifa_addr);
    if (address.ok()) found.addresses.push_back(*address);
  }
  freeifaddrs(list);
  return found;
}

std::string InterfaceOfAddress(const IpAddress& address) {
  std::string result;
  ForEachAddress([&](absl::string_view name, unsigned /*flags*/, const IpAddress& candidate) {
    if (result.empty() && candidate.Bytes() == address.Bytes()) result = std::string(name);
  });
  return result;
}

bool SharesSubnet(const IpAddress& address) {
  if (IsLinkLocal(address)) return false;
  struct Subnet {
    std::string interface;
    std::string address;
    std::string mask;
  };
  std::vector<Subnet> subnets;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return false;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || entry->ifa_netmask == nullptr ||
        (entry->ifa_flags & IFF_LOOPBACK) != 0) {
      continue;
    }
    const absl::StatusOr<IpAddress> its = IpAddress::FromSockaddr(entry->ifa_addr);
    const absl::StatusOr<IpAddress> mask = IpAddress::FromSockaddr(entry->ifa_netmask);
    if (!its.ok() || !mask.ok() || IsLinkLocal(*its) || its->is_v4() != address.is_v4()) continue;
    const std::string label = entry->ifa_name;
    subnets.push_back({label.substr(0, label.find(':')), its->Bytes(), mask->Bytes()});
  }
  freeifaddrs(list);
  const auto overlap = [](const Subnet& one, const Subnet& other) {
    for (size_t i = 0; i < one.address.size(); ++i) {
      if (((one.address[i] ^ other.address[i]) & one.mask[i] & other.mask[i]) != 0) return false;
    }
    return true;
  };
  return std::any_of(subnets.begin(), subnets.end(), [&](const Subnet& own) {
    return own.address == address.Bytes() &&
           std::any_of(subnets.begin(), subnets.end(), [&](const Subnet& other) {
             return other.interface != own.interface && overlap(own, other);
           });
  });
}

std::vector<IpAddress> OwnAddresses() {
  std::vector<IpAddress> found;
  ForEachAddress([&](absl::string_view /*name*/, unsigned /*flags*/, const IpAddress& address) {
    if (MeansSomethingElsewhere(address)) found.push_back(address);
  });
  return found;
}

std::vector<IpAddress> AddressesOfMac(const MacAddress& mac) {
  const std::set<std::string> names = InterfacesOfMac(mac);
  std::vector<IpAddress> found;
  ForEachAddress([&](absl::string_view name, unsigned /*flags*/, const IpAddress& address) {
    if (names.contains(std::string(name)) && MeansSomethingElsewhere(address)) {
      found.push_back(address);
    }
  });
  std::stable_partition(found.begin(), found.end(),
                        [](const IpAddress& address) { return address.is_v4(); });
  return found;
}

std::optional<IpAddress> MostReachable(absl::Span<const IpAddress> addresses) {
  // The first of the best: clusters of IPv6 give pods an IPv4 address of 169.254.0.0/16 for the way
  // out, by which no pod reaches another.
  const auto rank = [](const IpAddress& address) {
    return (IsLinkLocal(address) ? 2 : 0) + (address.is_v4() ? 0 : 1);
  };
  const auto* const best =
      std::min_element(addresses.begin(), addresses.end(),
                       [&](const IpAddress& a, const IpAddress& b) { return rank(a) < rank(b); });
  return best == addresses.end() ? std::nullopt : std::optional(*best);
}

IpAddress LikelyPublicAddress() {
  std::vector<IpAddress> addresses;
  ForEachAddress([&](absl::string_view /*name*/, unsigned flags, const IpAddress& address) {
    if ((flags & IFF_LOOPBACK) == 0 && MeansSomethingElsewhere(address)) {
      addresses.push_back(address);
    }
  });
  return MostReachable(addresses).value_or(*IpAddress::Parse("127.0.0.1"));
}

}  // namespace railhead::net
