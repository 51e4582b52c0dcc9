// SPDX-License-Identifier: Apache-2.0
#include "runtime/shm/allocation.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <mutex>
#include <utility>

#include "runtime/base/round_up.h"
#include "runtime/shm/limits.h"

namespace railhead::shm {
namespace {

struct Table {
  std::mutex mutex;
  std::map<const std::byte*, std::shared_ptr<const Segment>> segments;  // by where they begin
};

// Not destroyed: threads may still free their memory when the process ends.
Table& ProcessTable() {
  static Table& table = *new Table;
  return table;
}

}  // namespace

absl::StatusOr<std::byte*> Allocate(size_t bytes) {
  // (No more than can be rounded up; too much in any case.)
  constexpr size_t kMost = std::numeric_limits<size_t>::max() / 2;
  absl::StatusOr<Segment> made = Segment::Create(RoundUp(std::min(bytes, kMost), kPage));
  if (!made.ok()) return made.status();
  const auto segment = std::make_shared<const Segment>(*std::move(made));
  Table& table = ProcessTable();
  const std::lock_guard<std::mutex> lock(table.mutex);
  table.segments[segment->data()] = segment;
  return segment->data();
}

absl::Status Free(std::byte* memory) {
  std::shared_ptr<const Segment> freed;  // after the lock: that takes its time
  Table& table = ProcessTable();
  const std::lock_guard<std::mutex> lock(table.mutex);
  const auto found = table.segments.find(memory);
  if (found == table.segments.end()) {
    return absl::InvalidArgumentError("this is not the start of memory from rhMemAlloc");
  }
  freed = std::move(found->second);
  table.segments.erase(found);
  return absl::OkStatus();
}

std::shared_ptr<const Segment> SegmentOf(const std::byte* memory, size_t bytes) {
  Table& table = ProcessTable();
  const std::lock_guard<std::mutex> lock(table.mutex);
  auto after = table.segments.upper_bound(memory);
  if (after == table.segments.begin()) return nullptr;
  const std::shared_ptr<const Segment>& segment = std::prev(after)->second;
  const auto offset = static_cast<size_t>(memory - segment->data());
  return offset <= segment->size() && bytes <= segment->size() - offset ? segment : nullptr;
}

}  // namespace railhead::shm
