// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_RUNTIME_SHM_WORLD_FOR_TEST_H_
#define RAILHEAD_RUNTIME_SHM_WORLD_FOR_TEST_H_

#include <memory>
#include <numeric>
#include <vector>

#include "absl/time/time.h"
#include "runtime/shm/group.h"
#include "runtime/shm/mailbox.h"
#include "runtime/shm/patience.h"
#include "runtime/shm/segment.h"

namespace railhead::shm {

// Ranks as threads that share a segment like processes.
class World {
 public:
  World(int ranks, bool crowded)
      : patience_{Group::Look(), absl::Seconds(60), nullptr, crowded},
        segment_(*Segment::Create(Group::Bytes(ranks) + Mailbox::Bytes(ranks))) {
    std::vector<int> names(static_cast<size_t>(ranks));
    std::iota(names.begin(), names.end(), 0);
    for (int rank = 0; rank < ranks; ++rank) {
      groups_.push_back(std::make_unique<Group>(segment_.data(), rank, ranks));
      mailboxes_.push_back(
          std::make_unique<Mailbox>(segment_.data() + Group::Bytes(ranks), rank, names));
    }
  }
  // Opens windows of all memory, which threads can access; unless `all`, the last rank's window is
  // empty.
  void OpenWindows(bool all) {
    const absl::Span<std::byte> everything(reinterpret_cast<std::byte*>(1), PTRDIFF_MAX);
    Window window{std::vector<absl::Span<std::byte>>(groups_.size(), everything), {}};
    if (!all) window.memory.back() = everything.subspan(0, 1);
    for (const auto& group : groups_) group->Open(window);
  }
  void CloseWindows() {
    for (const auto& group : groups_) group->Close(0);
  }
  Group& at(int rank) { return *groups_[static_cast<size_t>(rank)]; }
  Mailbox& mailbox(int rank) { return *mailboxes_[static_cast<size_t>(rank)]; }
  const Patience& patience() const { return patience_; }
  int ranks() const { return static_cast<int>(groups_.size()); }

 private:
  Patience patience_;
  Segment segment_;
  std::vector<std::unique_ptr<Group>> groups_;
  std::vector<std::unique_ptr<Mailbox>> mailboxes_;
};

}  // namespace railhead::shm

#endif  // RAILHEAD_RUNTIME_SHM_WORLD_FOR_TEST_H_
