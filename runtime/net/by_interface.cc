// SPDX-License-Identifier: Apache-2.0
#include "runtime/net/by_interface.h"

#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/random.h"
#include "runtime/net/fd.h"
#include "runtime/net/socket.h"

namespace railhead::net {

absl::Status BindToInterface(int fd, absl::string_view interface) {
  if (::setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, interface.data(),
                   static_cast<socklen_t>(interface.size())) == 0) {
    return absl::OkStatus();
  }
  return ErrnoError(absl::StrCat("bind to interface ", interface), errno);
}

bool IsBoundToInterface(int fd) {
  std::array<char, IFNAMSIZ> name{};
  socklen_t length = name.size();
  return ::getsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, name.data(), &length) == 0 && length > 0;
}

int ArrivalInterface(int fd) {
  const absl::StatusOr<SocketAddress> local = LocalAddress(fd);
  if (!local.ok()) return 0;
  alignas(cmsghdr) std::array<char, 256> buffer{};
  socklen_t length = buffer.size();
  constexpr int kOn = 1;
  // The kernel keeps it of the packet that completed the connection.
  if (local->address.is_v4()) {
    ::setsockopt(fd, IPPROTO_IP, IP_PKTINFO, &kOn, sizeof kOn);
    if (::getsockopt(fd, IPPROTO_IP, IP_PKTOPTIONS, buffer.data(), &length) != 0) return 0;
  } else {
    ::setsockopt(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, &kOn, sizeof kOn);
    if (::getsockopt(fd, IPPROTO_IPV6, IPV6_2292PKTOPTIONS, buffer.data(), &length) != 0) return 0;
  }
  msghdr message{};
  message.msg_control = buffer.data();
  message.msg_controllen = length;
  for (const cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
       part = CMSG_NXTHDR(&message, const_cast<cmsghdr*>(part))) {
    if (part->cmsg_level == IPPROTO_IP && part->cmsg_type == IP_PKTINFO) {
      in_pktinfo info;
      std::memcpy(&info, CMSG_DATA(part), sizeof info);
      return info.ipi_ifindex;
    }
    if (part->cmsg_level == IPPROTO_IPV6 && part->cmsg_type == IPV6_PKTINFO) {
      in6_pktinfo info;
      std::memcpy(&info, CMSG_DATA(part), sizeof info);
      return static_cast<int>(info.ipi6_ifindex);
    }
  }
  return 0;
}

void AnnounceAddress(const IpAddress& address, absl::string_view interface) {
  const absl::StatusOr<std::string> random = RandomBytes(2);
  if (!address.is_v4() || !random.ok()) return;
  const Fd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid() || !BindToInterface(fd.get(), interface).ok()) return;
  sockaddr_storage from;
  socklen_t length = address.ToSockaddr(0, &from);
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&from), length) != 0) return;
  // A link-local address, so that the kernel sends an ARP request on the link; another one each
  // time, as it does not repeat requests at once. The one of cloud metadata is not among them. A
  // host that has the address drops the packet.
  const auto third = static_cast<char>(1 + static_cast<unsigned char>((*random)[0]) % 160);
  const auto fourth = static_cast<char>(1 + static_cast<unsigned char>((*random)[1]) % 254);
  const std::string neighbour = {'\xa9', '\xfe', third, fourth};
  constexpr uint16_t kDiscard = 9;
  sockaddr_storage to;
  length = IpAddress::FromBytes(neighbour)->ToSockaddr(kDiscard, &to);
  ::sendto(fd.get(), nullptr, 0, MSG_DONTROUTE | MSG_NOSIGNAL,
           reinterpret_cast<const sockaddr*>(&to), length);
}

}  // namespace railhead::net
