// SPDX-License-Identifier: Apache-2.0
//
// Objects behind numbers that may be stale or wrong: at most a given number of them, reused. A key
// has the object's place and generation, so that the key of a released object finds nothing.
#ifndef RAILHEAD_PLUGINS_NCCL_PROFILER_SLOT_POOL_H_
#define RAILHEAD_PLUGINS_NCCL_PROFILER_SLOT_POOL_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace railhead::nccl {

// Keys are below 2^56. Not thread-safe.
template <class Object>
class SlotPool {
 public:
  explicit SlotPool(size_t limit) : limit_(limit) {}

  // Returns the key of a new object; 0 if all are in use.
  uint64_t Acquire() {
    uint32_t place = 0;
    if (!free_.empty()) {
      place = free_.back();
      free_.pop_back();
    } else if (slots_.size() < limit_) {
      place = static_cast<uint32_t>(slots_.size());
      slots_.emplace_back();
      // Release must not allocate.
      if (free_.capacity() < slots_.size()) free_.reserve(2 * slots_.size());
    } else {
      return 0;
    }
    Slot& slot = slots_[place];
    slot.object = Object();
    slot.used = true;
    ++used_;
    return Key(place, slot.generation);
  }

  // Returns null for any number that is not the key of an object in use.
  Object* Find(uint64_t key) {
    const uint64_t place = key & kPlaceMask;
    if (place >= slots_.size()) return nullptr;
    Slot& slot = slots_[place];
    return slot.used && key == Key(place, slot.generation) ? &slot.object : nullptr;
  }

  // Releases an object in use.
  void Release(uint64_t key) {
    const auto place = static_cast<uint32_t>(key & kPlaceMask);
    Slot& slot = slots_[place];
    slot.used = false;
    slot.generation = slot.generation == kLastGeneration ? 1 : slot.generation + 1;
    --used_;
    free_.push_back(place);
  }

  // Calls `visit(key, object)` for each object in use; it may release that object.
  template <class Visit>
  void ForEach(Visit visit) {
    for (size_t place = 0; place < slots_.size(); ++place) {
      Slot& slot = slots_[place];
      if (slot.used) visit(Key(place, slot.generation), slot.object);
    }
  }

  size_t used() const { return used_; }
  size_t limit() const { return limit_; }

 private:
  static constexpr unsigned kPlaceBits = 24;
  static constexpr uint64_t kPlaceMask = (uint64_t{1} << kPlaceBits) - 1;
  static constexpr uint32_t kLastGeneration = UINT32_MAX;

  struct Slot {
    Object object;
    uint32_t generation = 1;
    bool used = false;
  };

  static uint64_t Key(uint64_t place, uint32_t generation) {
    return (uint64_t{generation} << kPlaceBits) | place;
  }

  const size_t limit_;
  std::deque<Slot> slots_;
  std::vector<uint32_t> free_;
  size_t used_ = 0;
};

}  // namespace railhead::nccl

#endif  // RAILHEAD_PLUGINS_NCCL_PROFILER_SLOT_POOL_H_
