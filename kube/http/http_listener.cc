// SPDX-License-Identifier: Apache-2.0
#include "kube/http/http_listener.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace railhead::kube {
namespace {

constexpr int kBacklog = 1024;
constexpr int kSocketBufferBytes = 64 << 10;  // the kernel's memory counts towards a container's

absl::StatusOr<FileDescriptor> ListenOn(const std::string& address, int port) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) {
    return absl::InvalidArgumentError(absl::StrCat("\"", address, "\" is not an IP address"));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> info(found, freeaddrinfo);
  FileDescriptor socket(::socket(info->ai_family, info->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK,
                                 info->ai_protocol));
  const int fd = socket.get();
  const int on = 1;
  const int off = 0;
  if (fd >= 0) {
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    // Connections inherit them; set before they are made, they bound the window too.
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &kSocketBufferBytes, sizeof(kSocketBufferBytes));
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &kSocketBufferBytes, sizeof(kSocketBufferBytes));
    if (info->ai_family == AF_INET6) {
      setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    }
    if (bind(fd, info->ai_addr, info->ai_addrlen) == 0 && listen(fd, kBacklog) == 0) return socket;
  }
  const int error = errno;
  return absl::UnavailableError(
      absl::StrCat("cannot listen on port ", port, ": ", std::system_category().message(error),
                   error == EADDRINUSE ? "; stop the other process or choose another port" : ""));
}

}  // namespace

absl::StatusOr<FileDescriptor> Listen(const std::string& address, int port) {
  if (!address.empty()) return ListenOn(address, port);
  absl::StatusOr<FileDescriptor> both = ListenOn("::", port);
  return both.ok() ? std::move(both) : ListenOn("0.0.0.0", port);  // a machine without IPv6
}

int PortOf(const FileDescriptor& socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6*>(&address)->sin6_port
                   : reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
}

}  // namespace railhead::kube
