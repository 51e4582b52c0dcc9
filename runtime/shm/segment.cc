// SPDX-License-Identifier: Apache-2.0
#include "runtime/shm/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/page_changes.h"
#include "runtime/base/round_up.h"
#include "runtime/net/socket.h"
#include "runtime/shm/available_memory.h"
#include "runtime/shm/limits.h"

namespace railhead::shm {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

}  // namespace

void Segment::Unmap::operator()(std::byte* data) const { munmap(data, bytes); }

absl::StatusOr<Segment> Segment::Create(size_t bytes) {
  if (const uint64_t available = AvailableMemory("/"); bytes > available / 2) {
    return absl::ResourceExhaustedError(absl::StrCat("shared memory of ", bytes >> 20U,
                                                     " MiB is too much for a process that can "
                                                     "still get ",
                                                     available >> 20U,
                                                     " MiB; raise the pod's memory limit"));
  }
  net::Fd fd(memfd_create("railhead", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) return net::ErrnoError("memfd_create", errno);
  if (ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) {
    return net::ErrnoError("ftruncate of shared memory", errno);
  }
  if (fcntl(fd.get(), F_ADD_SEALS, kSeals) != 0) return net::ErrnoError("F_ADD_SEALS", errno);
  return Map(std::move(fd), bytes);
}

absl::StatusOr<Segment> Segment::Open(net::Fd fd, size_t bytes) {
  struct stat info = {};
  if (fstat(fd.get(), &info) != 0) return net::ErrnoError("fstat", errno);
  // A file that shrinks would kill a process that reads behind its end.
  if (info.st_size != static_cast<off_t>(bytes) ||
      (fcntl(fd.get(), F_GET_SEALS) & kSeals) != kSeals) {
    return absl::FailedPreconditionError("the shared memory differs from its announcement");
  }
  absl::StatusOr<Segment> segment = Map(std::move(fd), bytes);
  if (segment.ok()) segment->CloseFile();
  return segment;
}

absl::StatusOr<Segment> Segment::Map(net::Fd fd, size_t bytes) {
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (data == MAP_FAILED) return net::ErrnoError("mmap of shared memory", errno);
  return Segment(std::move(fd), static_cast<std::byte*>(data), bytes);
}

absl::Status Segment::Withdraw(absl::Span<const std::byte> bytes) const {
  const auto first = static_cast<size_t>(bytes.data() - data());
  const size_t begin = RoundUp(first, kPage);
  const size_t end = (first + bytes.size()) / kPage * kPage;
  if (begin >= end) return absl::OkStatus();
  std::byte* const pages = data() + begin;
  const std::lock_guard<std::mutex> lock(withdrawn_->mutex);
  // Before the pages change: a call that begins now must not tell others of this memory.
  withdrawn_->pages.emplace_back(pages, end - begin);
  withdrawn_->any.store(true, std::memory_order_release);
  if (mmap(pages, end - begin, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
           0) == MAP_FAILED) {
    return net::ErrnoError("mmap in place of shared memory", errno);
  }
  page_changes.fetch_add(1, std::memory_order_release);
  // Nobody needs the old pages. Without this they only stay allocated.
  if (fd_.valid()) {
    fallocate(fd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(begin),
              static_cast<off_t>(end - begin));
  }
  return absl::OkStatus();
}

bool Segment::IsShared(absl::Span<const std::byte> bytes) const {
  if (!withdrawn_->any.load(std::memory_order_acquire)) return true;
  const std::lock_guard<std::mutex> lock(withdrawn_->mutex);
  return std::none_of(withdrawn_->pages.begin(), withdrawn_->pages.end(), [&](const auto& pages) {
    return pages.data() < bytes.data() + bytes.size() && bytes.data() < pages.data() + pages.size();
  });
}

}  // namespace railhead::shm
