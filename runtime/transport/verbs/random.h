// SPDX-License-Identifier: Apache-2.0
//
// Cryptographically secure random bytes.
#ifndef RAILHEAD_RUNTIME_TRANSPORT_VERBS_RANDOM_H_
#define RAILHEAD_RUNTIME_TRANSPORT_VERBS_RANDOM_H_

#include <sys/random.h>

#include <cerrno>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/transport/verbs/device_port.h"

namespace railhead::transport::verbs {

// Returns a value of random bytes. `name` is the prefix of the error.
template <typename T>
absl::StatusOr<T> RandomBytes(absl::string_view name) {
  T value = {};
  ssize_t got = 0;
  do {
    got = getrandom(&value, sizeof(value), 0);
  } while (got < 0 && errno == EINTR);
  if (got != sizeof(value)) return VerbsError(name, "get random bytes", errno);
  return value;
}

}  // namespace railhead::transport::verbs

#endif  // RAILHEAD_RUNTIME_TRANSPORT_VERBS_RANDOM_H_
