// SPDX-License-Identifier: Apache-2.0
//
// The listening socket of an HTTP server (http_server.h).
#ifndef RAILHEAD_KUBE_HTTP_HTTP_LISTENER_H_
#define RAILHEAD_KUBE_HTTP_HTTP_LISTENER_H_

#include <string>

#include "absl/status/statusor.h"
#include "base/file_descriptor.h"

namespace railhead::kube {

// A socket that does not block, on a numeric address; an empty one means all addresses, IPv6 and
// IPv4. Port 0: any free one. InvalidArgument if the address is not numeric; Unavailable if the
// port cannot be bound.
absl::StatusOr<FileDescriptor> Listen(const std::string& address, int port);

// The port of a bound socket.
int PortOf(const FileDescriptor& socket);

}  // namespace railhead::kube

#endif  // RAILHEAD_KUBE_HTTP_HTTP_LISTENER_H_
