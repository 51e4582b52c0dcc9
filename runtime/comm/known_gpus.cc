// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/known_gpus.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"

namespace railhead::comm {
namespace {

// As numbers: they are not all of one array.
uintptr_t Number(const void* address) { return reinterpret_cast<uintptr_t>(address); }

bool Contains(absl::Span<const std::byte> memory, const void* begin, size_t size) {
  const uintptr_t offset = Number(begin) - Number(memory.data());
  return Number(begin) >= Number(memory.data()) && offset < memory.size() &&
         size <= memory.size() - offset;
}

}  // namespace

std::shared_ptr<const void> KnownGpus::Add(absl::Span<const std::byte> memory,
                                           const device::Memory& gpu, bool read) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const Known* const added =
      known_.emplace_back(std::make_unique<const Known>(Known{memory, gpu, read})).get();
  return {added, [self = shared_from_this()](const void* gone) {
            const std::lock_guard<std::mutex> locked(self->mutex_);
            std::erase_if(self->known_, [&](const auto& known) { return known.get() == gone; });
          }};
}

bool KnownGpus::AreRead(absl::Span<const std::byte> bytes, const device::Memory& gpu) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return std::any_of(known_.begin(), known_.end(), [&](const auto& known) {
    return known->read && known->gpu.IsSame(gpu) &&
           Contains(known->memory, bytes.data(), bytes.size());
  });
}

bool KnownGpus::Holds(const void* address) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return std::any_of(known_.begin(), known_.end(),
                     [&](const auto& known) { return Contains(known->memory, address, 1); });
}

bool KnownGpus::Note(const rails::RailName& rail, fabric::GpuDirectWay way,
                     const std::string& trouble) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = std::find_if(rails_.begin(), rails_.end(), [&](const Rail& noted) {
    return rails::ToString(noted.seen.name) == rails::ToString(rail);
  });
  if (found == rails_.end()) {
    rails_.push_back({{rail, way}, trouble});
    return true;
  }
  const bool news = found->seen.way != way;
  *found = {{rail, way}, trouble};
  return news;
}

std::vector<metrics::GpuDirectSnapshot> KnownGpus::Ways() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<metrics::GpuDirectSnapshot> ways;
  ways.reserve(rails_.size());
  for (const Rail& rail : rails_) ways.push_back(rail.seen);
  return ways;
}

std::string KnownGpus::Trouble() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::string trouble;
  for (const Rail& rail : rails_) {
    if (rail.trouble.empty()) continue;
    absl::StrAppend(&trouble, trouble.empty() ? "" : "; ", rail.trouble);
  }
  return trouble;
}

}  // namespace railhead::comm
