// SPDX-License-Identifier: Apache-2.0
//
// Memory shared by several processes: an anonymous file that no other process can open and that
// disappears with its last user.
#ifndef RAILHEAD_RUNTIME_SHM_SEGMENT_H_
#define RAILHEAD_RUNTIME_SHM_SEGMENT_H_

#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"
#include "runtime/net/fd.h"

namespace railhead::shm {

// Movable; the memory stays in place.
class Segment {
 public:
  // Creates a segment of zeros. ResourceExhausted if it is more than half of the memory this
  // process can still get: pages are allocated at the first write, too late for an error.
  static absl::StatusOr<Segment> Create(size_t bytes);
  // Maps a segment of another process. FailedPrecondition if it has another size, or could still
  // shrink.
  static absl::StatusOr<Segment> Open(net::Fd fd, size_t bytes);

  std::byte* data() const { return map_.get(); }
  size_t size() const { return map_.get_deleter().bytes; }
  // Descriptor to pass to other processes; -1 for a segment of another process, or after CloseFile.
  int fd() const { return fd_.get(); }
  // Call when all processes have the segment; the memory stays.
  void CloseFile() { fd_.Reset(); }

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
