// SPDX-License-Identifier: Apache-2.0
//
// Memory shared by several processes: an anonymous file that no other process can open and that
// disappears with its last user.
#ifndef RAILHEAD_RUNTIME_SHM_SEGMENT_H_
#define RAILHEAD_RUNTIME_SHM_SEGMENT_H_

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
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

  // Puts pages of zeros that no other process has under the whole pages of these bytes: what others
  // write afterwards changes nothing here. Threads may use the bytes again afterwards.
  // Registrations with NICs and GPUs keep the old pages (page_changes.h). Thread-safe.
  absl::Status Withdraw(absl::Span<const std::byte> bytes) const;
  // Returns true if other processes have the pages of all these bytes. Thread-safe.
  bool IsShared(absl::Span<const std::byte> bytes) const;

 private:
  struct Unmap {
    size_t bytes = 0;
    void operator()(std::byte* data) const;
  };

  struct Withdrawn {
    std::atomic<bool> any{false};
    std::mutex mutex;
    std::vector<absl::Span<const std::byte>> pages;
  };

  Segment(net::Fd fd, std::byte* data, size_t bytes)
      : fd_(std::move(fd)), map_(data, {bytes}), withdrawn_(std::make_unique<Withdrawn>()) {}
  static absl::StatusOr<Segment> Map(net::Fd fd, size_t bytes);

  net::Fd fd_;
  std::unique_ptr<std::byte, Unmap> map_;
  std::unique_ptr<Withdrawn> withdrawn_;
};

}  // namespace railhead::shm

#endif  // RAILHEAD_RUNTIME_SHM_SEGMENT_H_
