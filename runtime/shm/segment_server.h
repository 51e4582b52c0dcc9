// SPDX-License-Identifier: Apache-2.0
//
// Passes a segment to the other ranks of a pod over a Unix socket in their common network
// namespace, which needs no file and no privilege. Only processes of the same user that know the
// key get it.
#ifndef RAILHEAD_RUNTIME_SHM_SEGMENT_SERVER_H_
#define RAILHEAD_RUNTIME_SHM_SEGMENT_SERVER_H_

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

// Returns the identity of kernel, network namespace and user: processes with equal texts can share
// memory this way; "" equals nothing.
std::string PlaceOfProcess();

// Segment server: the side that owns the segment.
class SegmentServer {
 public:
  static absl::StatusOr<SegmentServer> Open();

  static constexpr size_t kAddressSize = 64;
  // Secret address for the takers.
  const std::string& address() const { return address_; }

  // Passes the segment to `takers` processes and returns when all have it. Rejects processes
  // without the key.
  absl::Status Give(const Segment& segment, int takers, absl::Time deadline,
                    const Halt& halt = nullptr) const;

 private:
  SegmentServer(net::Fd socket, std::string address)
      : socket_(std::move(socket)), address_(std::move(address)) {}

  net::Fd socket_;
  std::string address_;
};

// Fetches a segment of this size from the server at `address`.
absl::StatusOr<Segment> Take(absl::string_view address, size_t bytes, absl::Time deadline,
                             const Halt& halt = nullptr);

}  // namespace railhead::shm

#endif  // RAILHEAD_RUNTIME_SHM_SEGMENT_SERVER_H_
