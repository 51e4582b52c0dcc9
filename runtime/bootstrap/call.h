// SPDX-License-Identifier: Apache-2.0
//
// Connection to another rank: dials, and performs the client side of the handshake.
#ifndef RAILHEAD_RUNTIME_BOOTSTRAP_CALL_H_
#define RAILHEAD_RUNTIME_BOOTSTRAP_CALL_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "runtime/bootstrap/frame.h"
#include "runtime/bootstrap/handshake.h"
#include "runtime/bootstrap/hello.h"
#include "runtime/bootstrap/secret.h"
#include "runtime/net/fd.h"

namespace railhead::bootstrap {

// Maximum wait for one answer to a dial.
inline constexpr absl::Duration kOneDial = absl::Seconds(5);

// Waits until a connection is readable; may do other work during the wait, and may end it with an
// error.
using Waiter = absl::FunctionRef<absl::Status(int fd, absl::Time deadline)>;

// A mutually authenticated connection, or the error.
struct Call {
  absl::Status status;
  bool final = false;     // a retry is useless
  bool not_open = false;  // see Refusal
  net::Fd fd;
  FrameReader reader{kHelloLimit};
  std::string host_name;
};

// `hello` needs no nonce.
Call ShakeHands(net::Fd fd, Hello hello, const Secret& secret, absl::Time deadline, Waiter wait);

// Reads the next frame of an established call.
absl::StatusOr<Frame> ReadFrame(Call& call, absl::Time deadline, Waiter wait);

}  // namespace railhead::bootstrap

#endif  // RAILHEAD_RUNTIME_BOOTSTRAP_CALL_H_
