// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/communicator/known_gpus.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/rails/peer.h"

namespace railhead::comm {
namespace {

// As numbers, because the pointers may belong to different arrays.
uintptr_t Number(const void* address) { return reinterpret_cast<uintptr_t>(address); }

bool Contains(absl::Span<const std::byte> memory, const void* begin, size_t size) {
  const uintptr_t offset = Number(begin) - Number(memory.data());
  return Number(begin) >= Number(memory.data()) && offset < memory.size() &&
         size <= memory.size() - offset;
}

bool IsSame(const rails::RailName& one, const rails::RailName& other) {
  return rails::ToString(one) == rails::ToString(other);
}

bool IsRead(const std::vector<KnownGpus::Way>& ways) {
  return std::any_of(ways.begin(), ways.end(), [](const KnownGpus::Way& way) {
    return way.rail.way != fabric::GpuDirectWay::kNone;
  });
}

}  // namespace

std::shared_ptr<const void> KnownGpus::Add(absl::Span<const std::byte> memory,
                                           const device::Memory& gpu, std::vector<Way> ways) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const Known* const added =
      known_.emplace_back(std::make_unique<const Known>(Known{memory, gpu, std::move(ways)})).get();
  return {added, [self = shared_from_this()](const void* gone) {
            const std::lock_guard<std::mutex> locked(self->mutex_);
            std::erase_if(self->known_, [&](const auto& known) { return known.get() == gone; });
          }};
}

bool KnownGpus::AreRead(absl::Span<const std::byte> bytes, const device::Memory& gpu) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return std::any_of(known_.begin(), known_.end(), [&](const auto& known) {
    return IsRead(known->ways) && known->gpu.IsSame(gpu) &&
           Contains(known->memory, bytes.data(), bytes.size());
  });
}

bool KnownGpus::Holds(const void* address) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return std::any_of(known_.begin(), known_.end(),
                     [&](const auto& known) { return Contains(known->memory, address, 1); });
}

bool KnownGpus::IsNews(const metrics::GpuDirectSnapshot& rail) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const bool told = std::any_of(told_.begin(), told_.end(), [&](const auto& before) {
    return before.way == rail.way && IsSame(before.name, rail.name);
  });
  if (!told) told_.push_back(rail);
  return !told;
}

std::vector<KnownGpus::Way> KnownGpus::Worst() const {
  std::vector<Way> worst;
  for (const auto& known : known_) {
    for (const Way& way : known->ways) {
      const auto found = std::find_if(worst.begin(), worst.end(), [&](const Way& other) {
        return IsSame(other.rail.name, way.rail.name);
      });
      if (found == worst.end()) {
        worst.push_back(way);
      } else if (way.rail.way < found->rail.way) {
        *found = way;
      }
    }
  }
  return worst;
}

std::vector<metrics::GpuDirectSnapshot> KnownGpus::Ways() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<metrics::GpuDirectSnapshot> ways;
  for (const Way& way : Worst()) ways.push_back(way.rail);
  return ways;
}

std::string KnownGpus::Trouble() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::string trouble;
  for (const Way& way : Worst()) {
    if (way.trouble.empty()) continue;
    absl::StrAppend(&trouble, trouble.empty() ? "" : "; ", way.trouble);
  }
  return trouble;
}

}  // namespace railhead::comm
