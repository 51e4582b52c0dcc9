// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/verbs/user_memory.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace railhead::transport::verbs {

std::shared_ptr<UserMemory> UserMemory::Of(std::shared_ptr<const DevicePort> port) {
  return std::shared_ptr<UserMemory>(new UserMemory(std::move(port)));
}

std::shared_ptr<const void> UserMemory::Know(absl::Span<const std::byte> memory,
                                             std::shared_ptr<const void> owner, Logger log) {
  const std::lock_guard<std::mutex> lock(mutex_);
  longest_ = std::max(longest_, memory.size());
  const auto known =
      known_.emplace(reinterpret_cast<uintptr_t>(memory.data()),
                     Known{memory, std::move(owner), std::move(log), false, nullptr});
  return {&known->second, [self = shared_from_this(), known](const void*) { self->Forget(known); }};
}

void UserMemory::Forget(Table::iterator known) {
  Table::node_type forgotten;  // deregistered after the lock: that takes its time
  const std::lock_guard<std::mutex> lock(mutex_);
  forgotten = known_.extract(known);
}

void UserMemory::MakeRoom() {
  std::vector<std::shared_ptr<const Region>> regions;
  const std::lock_guard<std::mutex> lock(mutex_);
  for (auto& [begin, known] : known_) {
    known.tried = true;
    if (known.region == nullptr) continue;
    known.log.Info(absl::StrCat(port_->name(), ": gives up the registration of ",
                                known.memory.size(),
                                " bytes, for a connection needs the memory that may be pinned"));
    regions.push_back(std::exchange(known.region, nullptr));
  }
}

std::shared_ptr<const UserMemory::Region> UserMemory::Find(absl::Span<const std::byte> bytes) {
  const auto begin = reinterpret_cast<uintptr_t>(bytes.data());
  const std::lock_guard<std::mutex> lock(mutex_);
  // Mostly the one that begins last before the bytes; others where pieces overlap.
  for (auto next = known_.upper_bound(begin); next != known_.begin();) {
    --next;
    const uintptr_t offset = begin - next->first;
    if (offset >= longest_) break;
    Known& known = next->second;
    if (offset > known.memory.size() || bytes.size() > known.memory.size() - offset) continue;
    if (!known.tried) Register(known);
    if (known.region != nullptr) return known.region;
  }
  return nullptr;
}

void UserMemory::Register(Known& known) const {
  known.tried = true;
  // The NIC only reads it here. The table's functions take no pointers to constants.
  void* const address = const_cast<std::byte*>(known.memory.data());
  absl::StatusOr<Owned<ibv_mr>> registered =
      port_->Register(address, known.memory.size(), IBV_ACCESS_RELAXED_ORDERING);
  if (!registered.ok()) {
    known.log.Info(
        absl::StrCat(registered.status().message(), ". What is sent from there is copied"));
    return;
  }
  auto region = std::make_shared<Region>();
  region->port_ = port_;
  region->owner_ = known.owner;
  region->registered_ = *std::move(registered);
  known.region = std::move(region);
  known.log.Write(LogLevel::kDebug, absl::StrCat(port_->name(), ": registered ",
                                                 known.memory.size(), " bytes to send from"));
}

}  // namespace railhead::transport::verbs
