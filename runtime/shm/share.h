// SPDX-License-Identifier: Apache-2.0
//
// How a segment gets to the other ranks of a pod: over a Unix socket in the network namespace that
// they share, which needs no file and no privilege. Only processes of our own user that know the
// key get it.
#ifndef RAILHEAD_RUNTIME_SHM_SHARE_H_
#define RAILHEAD_RUNTIME_SHM_SHARE_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "runtime/base/halt.h"
#include "runtime/net/fd.h"
#include "runtime/shm/segment.h"

namespace railhead::shm {

// What tells whether two processes can share memory like this: the same kernel, network namespace
// and user. Equal texts mean yes; "" is equal to nothing.
std::string PlaceOfProcess();

// The side that has the segment.
class Giver {
 public:
  static absl::StatusOr<Giver> Open();

  static constexpr size_t kAddressSize = 64;
  // To be carried to the takers; a secret.
  const std::string& address() const { return address_; }

  // Gives the segment to as many takers. Strangers are turned away. Returns when all have it.
  absl::Status Give(const Segment& segment, int takers, absl::Time deadline,
                    const Halt& halt = nullptr) const;

 private:
  Giver(net::Fd socket, std::string address)
      : socket_(std::move(socket)), address_(std::move(address)) {}

  net::Fd socket_;
  std::string address_;
};

// Fetches a segment of this size from the giver at `address`.
absl::StatusOr<Segment> Take(absl::string_view address, size_t bytes, absl::Time deadline,
                             const Halt& halt = nullptr);

}  // namespace railhead::shm

#endif  // RAILHEAD_RUNTIME_SHM_SHARE_H_
