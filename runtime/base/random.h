// SPDX-License-Identifier: Apache-2.0
//
// Random bytes of the kernel, for keys, tokens and nonces.
#ifndef RAILHEAD_RUNTIME_BASE_RANDOM_H_
#define RAILHEAD_RUNTIME_BASE_RANDOM_H_

#include <sys/random.h>

#include <cerrno>
#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace railhead {

// Returns cryptographically secure random bytes. At most 256, which the kernel returns at once.
inline absl::StatusOr<std::string> RandomBytes(size_t size) {
  std::string bytes(size, '\0');
  ssize_t got = 0;
  do {
    got = ::getrandom(bytes.data(), size, 0);
  } while (got < 0 && errno == EINTR);
  if (got == static_cast<ssize_t>(size)) return bytes;
  return absl::ErrnoToStatus(errno, "getrandom");
}

}  // namespace railhead

#endif  // RAILHEAD_RUNTIME_BASE_RANDOM_H_
