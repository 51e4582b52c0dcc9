// SPDX-License-Identifier: Apache-2.0
//
// Unix sockets between processes of one network namespace. Their names are abstract: there is no
// file, and a name is free again when its socket is closed.
#ifndef RAILHEAD_RUNTIME_NET_LOCAL_SOCKET_H_
#define RAILHEAD_RUNTIME_NET_LOCAL_SOCKET_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "runtime/base/halt.h"
#include "runtime/net/fd.h"

namespace railhead::net {

// Returns a non-blocking socket that has the name, at most 100 bytes; it does not listen yet.
// AlreadyExists if another process has it.
absl::StatusOr<Fd> BindLocal(absl::string_view name);

// Lets others connect.
absl::Status ListenLocal(const Fd& socket);

// Connects, non-blocking; waits while the queue of connections is full. NotFound if no process
// listens at this name.
absl::StatusOr<Fd> DialLocal(absl::string_view name, absl::Time deadline,
                             const Halt& halt = nullptr);

// Returns true if the process at the other end has this process's user.
bool IsOurUser(int fd);

}  // namespace railhead::net

#endif  // RAILHEAD_RUNTIME_NET_LOCAL_SOCKET_H_
