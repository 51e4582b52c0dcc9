// SPDX-License-Identifier: Apache-2.0
#include "runtime/net/route.h"

#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/net/fd.h"
#include "runtime/net/socket.h"

namespace railhead::net {
namespace {

constexpr size_t kLongestAnswer = size_t{32} << 10U;

// Returns `size` rounded up to netlink's alignment.
size_t Aligned(size_t size) { return (size + NLMSG_ALIGNTO - 1) & ~size_t{NLMSG_ALIGNTO - 1}; }

// A request, which is a fixed part and attributes.
class Request {
 public:
  template <class Fixed>
  Request(uint16_t type, const Fixed& fixed) : bytes_(Aligned(sizeof(nlmsghdr)), '\0') {
    header_.nlmsg_type = type;
    header_.nlmsg_flags = NLM_F_REQUEST;
    Append(&fixed, sizeof fixed);
  }

  void Add(uint16_t type, const void* value, size_t size) {
    rtattr attribute{};
    attribute.rta_type = type;
    attribute.rta_len = static_cast<uint16_t>(sizeof attribute + size);
    bytes_.append(reinterpret_cast<const char*>(&attribute), sizeof attribute);
    Append(value, size);
  }

  std::string Take() {
    header_.nlmsg_len = static_cast<uint32_t>(bytes_.size());
    std::memcpy(bytes_.data(), &header_, sizeof header_);
    return std::move(bytes_);
  }

 private:
  void Append(const void* value, size_t size) {
    bytes_.append(static_cast<const char*>(value), size);
    bytes_.resize(Aligned(bytes_.size()), '\0');
  }

  nlmsghdr header_{};
  std::string bytes_;
};

// Sends a request and returns the answer, whose type is `type`. The kernel answers within the call
// that sends.
absl::StatusOr<std::string> Ask(std::string request, uint16_t type) {
  const Fd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  if (!socket.valid()) return ErrnoError("netlink", errno);
  sockaddr_nl kernel{};
  kernel.nl_family = AF_NETLINK;
  if (::sendto(socket.get(), request.data(), request.size(), 0,
               reinterpret_cast<const sockaddr*>(&kernel), sizeof kernel) < 0) {
    return ErrnoError("netlink", errno);
  }
  std::string answer(kLongestAnswer, '\0');
  const ssize_t got = ::recv(socket.get(), answer.data(), answer.size(), MSG_DONTWAIT);
  if (got < 0) return ErrnoError("netlink", errno);
  answer.resize(static_cast<size_t>(got));
  nlmsghdr header;
  if (answer.size() < sizeof header) return absl::InternalError("netlink: the answer is too short");
  std::memcpy(&header, answer.data(), sizeof header);
  if (header.nlmsg_type == NLMSG_ERROR && answer.size() >= sizeof header + sizeof(int)) {
    int error = 0;
    std::memcpy(&error, answer.data() + sizeof header, sizeof error);
    return ErrnoError("netlink", -error);
  }
  if (header.nlmsg_type != type || header.nlmsg_len > answer.size()) {
    return absl::InternalError("netlink: the answer is of another kind");
  }
  answer.resize(header.nlmsg_len);
  return answer.substr(Aligned(sizeof header));
}

using Visitor = absl::FunctionRef<void(int type, absl::string_view value)>;

void ForEachAttribute(absl::string_view bytes, Visitor visit) {
  rtattr attribute;
  while (bytes.size() >= sizeof attribute) {
    std::memcpy(&attribute, bytes.data(), sizeof attribute);
    if (attribute.rta_len < sizeof attribute || attribute.rta_len > bytes.size()) return;
    visit(attribute.rta_type & NLA_TYPE_MASK,
          bytes.substr(sizeof attribute, attribute.rta_len - sizeof attribute));
    bytes.remove_prefix(std::min(bytes.size(), Aligned(attribute.rta_len)));
  }
}

template <class Fixed>
absl::StatusOr<Fixed> TakeFixed(absl::string_view* answer) {
  Fixed fixed;
  if (answer->size() < sizeof fixed) return absl::InternalError("netlink: the answer is too short");
  std::memcpy(&fixed, answer->data(), sizeof fixed);
  answer->remove_prefix(std::min(answer->size(), Aligned(sizeof fixed)));
  return fixed;
}

}  // namespace

absl::StatusOr<Route> FindRoute(const IpAddress& local, const IpAddress& remote, int interface) {
  if (local.is_v4() != remote.is_v4()) {
    return absl::InvalidArgumentError("the addresses are of different families");
  }
  const std::string from = local.Bytes();
  const std::string to = remote.Bytes();
  rtmsg fixed{};
  fixed.rtm_family = local.is_v4() ? AF_INET : AF_INET6;
  fixed.rtm_src_len = fixed.rtm_dst_len = static_cast<unsigned char>(8 * to.size());
  // Without this flag the kernel takes an address for a neighbour if no route by the interface
  // leads to it.
  if (interface != 0) fixed.rtm_flags = RTM_F_FIB_MATCH;
  Request request(RTM_GETROUTE, fixed);
  request.Add(RTA_DST, to.data(), to.size());
  request.Add(RTA_SRC, from.data(), from.size());
  if (interface != 0) request.Add(RTA_OIF, &interface, sizeof interface);
  absl::StatusOr<std::string> bytes = Ask(request.Take(), RTM_NEWROUTE);
  if (!bytes.ok()) return bytes.status();
  absl::string_view answer = *bytes;
  const absl::StatusOr<rtmsg> found = TakeFixed<rtmsg>(&answer);
  if (!found.ok()) return found.status();
  Route route;
  route.local = found->rtm_type == RTN_LOCAL;
  route.interface = interface;
  ForEachAttribute(answer, [&route](int type, absl::string_view value) {
    if (type == RTA_OIF && value.size() == sizeof route.interface) {
      std::memcpy(&route.interface, value.data(), sizeof route.interface);
    }
    if (type == RTA_GATEWAY || type == RTA_VIA || type == RTA_MULTIPATH) route.gateway = true;
  });
  return route;
}

absl::StatusOr<Interface> ReadInterface(int index) {
  ifinfomsg fixed{};
  fixed.ifi_family = AF_UNSPEC;
  fixed.ifi_index = index;
  absl::StatusOr<std::string> bytes = Ask(Request(RTM_GETLINK, fixed).Take(), RTM_NEWLINK);
  if (!bytes.ok()) return bytes.status();
  absl::string_view answer = *bytes;
  const absl::StatusOr<ifinfomsg> found = TakeFixed<ifinfomsg>(&answer);
  if (!found.ok()) return found.status();
  Interface interface;
  interface.index = found->ifi_index;
  interface.loopback = (found->ifi_flags & IFF_LOOPBACK) != 0;
  interface.running = (found->ifi_flags & IFF_UP) != 0 && (found->ifi_flags & IFF_RUNNING) != 0;
  ForEachAttribute(answer, [&interface](int type, absl::string_view value) {
    // Text ends with a zero.
    if (type == IFLA_IFNAME) interface.name = std::string(value.substr(0, value.find('\0')));
    if (type == IFLA_STATS64 && value.size() >= sizeof(rtnl_link_stats64::tx_bytes) +
                                                    offsetof(rtnl_link_stats64, tx_bytes)) {
      std::memcpy(&interface.sent_bytes, value.data() + offsetof(rtnl_link_stats64, tx_bytes),
                  sizeof interface.sent_bytes);
    }
    if (type == IFLA_LINKINFO) {
      ForEachAttribute(value, [&interface](int inner, absl::string_view text) {
        if (inner == IFLA_INFO_KIND) {
          interface.kind = std::string(text.substr(0, text.find('\0')));
        }
      });
    }
  });
  return interface;
}

absl::StatusOr<Interface> ReadInterface(absl::string_view name) {
  const std::string device(name.substr(0, name.find(':')));
  const unsigned index = ::if_nametoindex(device.c_str());
  if (index == 0) return ErrnoError(absl::StrCat("interface ", device), errno);
  return ReadInterface(static_cast<int>(index));
}

}  // namespace railhead::net
