// SPDX-License-Identifier: Apache-2.0
//
// A piece of memory that several processes share: an anonymous file without a name, which nobody
// else can open and which is gone with its last user, however that one ends.
#ifndef RAILHEAD_RUNTIME_SHM_SEGMENT_H_
#define RAILHEAD_RUNTIME_SHM_SEGMENT_H_

#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"
#include "runtime/net/fd.h"

namespace railhead::shm {

// Movable. The memory stays where it is.
class Segment {
 public:
  // Makes one of zeros. ResourceExhausted when it is more than half of what this process can still
  // get: pages are taken when they are first written to, and then it would be too late to say no.
  static absl::StatusOr<Segment> Create(size_t bytes);
  // Maps one that another process made. FailedPrecondition when it is not of this size, or could
  // still become smaller.
  static absl::StatusOr<Segment> Open(net::Fd fd, size_t bytes);

  std::byte* data() const { return map_.get(); }
  size_t size() const { return map_.get_deleter().bytes; }
  // To be passed to other processes.
  int fd() const { return fd_.get(); }

 private:
  struct Unmap {
    size_t bytes = 0;
    void operator()(std::byte* data) const;
  };

  Segment(net::Fd fd, std::byte* data, size_t bytes) : fd_(std::move(fd)), map_(data, {bytes}) {}
  static absl::StatusOr<Segment> Map(net::Fd fd, size_t bytes);

  net::Fd fd_;
  std::unique_ptr<std::byte, Unmap> map_;
};

}  // namespace railhead::shm

#endif  // RAILHEAD_RUNTIME_SHM_SEGMENT_H_
