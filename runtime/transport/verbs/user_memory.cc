// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/verbs/user_memory.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace railhead::transport::verbs {
namespace {

// The fix for memory of a kind that no NIC may read.
constexpr absl::string_view kAllocate =
    "Allocate it with cudaMalloc (PyTorch: without expandable_segments)";

bool Contains(absl::Span<const std::byte> memory, absl::Span<const std::byte> bytes) {
  const uintptr_t offset =
      reinterpret_cast<uintptr_t>(bytes.data()) - reinterpret_cast<uintptr_t>(memory.data());
  return offset <= memory.size() && bytes.size() <= memory.size() - offset;
}

}  // namespace

std::shared_ptr<UserMemory> UserMemory::Of(std::shared_ptr<const DevicePort> port) {
  return std::shared_ptr<UserMemory>(new UserMemory(std::move(port)));
}

std::shared_ptr<const void> UserMemory::Know(absl::Span<const std::byte> memory,
                                             std::shared_ptr<const void> owner, Logger log) {
  Known known = {memory, std::move(owner), std::move(log)};
  Register(known);
  return Add(std::move(known));
}

KnownGpu UserMemory::KnowGpu(absl::Span<const std::byte> memory, const device::Memory& gpu,
                             Logger log) {
  Known known = {memory, nullptr, std::move(log)};
  known.gpu = gpu;
  KnownGpu result;
  if (gpu.HasIdentity()) {
    result.trouble = RegisterGpu(known, result.way);
  } else {
    result.trouble = absl::StrCat(
        port_->name(), " cannot read memory of ", gpu.Name(),
        ": its driver provides no buffer ID that distinguishes it from an earlier buffer at its "
        "address. ",
        kAllocate);
  }
  gpus_.store(true, std::memory_order_release);
  result.known = Add(std::move(known));
  return result;
}

absl::StatusOr<UserMemory::Shared> UserMemory::Share(absl::Span<std::byte> memory,
                                                     const device::DmaBuf* buffer, bool on_device,
                                                     const Logger& log) {
  // Reads: of this side's own NIC (self_pair.h).
  constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                          IBV_ACCESS_REMOTE_READ | IBV_ACCESS_RELAXED_ORDERING;
  absl::StatusOr<Owned<ibv_mr>> registered =
      buffer != nullptr ? port_->RegisterDmaBuf(*buffer, memory, kAccess)
                        : port_->Register(memory.data(), memory.size(), kAccess);
  if (!registered.ok()) return registered.status();
  Known known = {memory, nullptr, log};
  known.region = Make(*std::move(registered), known);
  known.on_device = on_device;
  known.shared = true;
  if (on_device) on_device_.store(true, std::memory_order_release);
  Shared shared;
  shared.remote_key = known.region->remote_key();
  shared.known = Add(std::move(known));
  return shared;
}

std::string UserMemory::RegisterGpu(Known& known, fabric::GpuDirectWay& way) const {
  constexpr int kAccess = IBV_ACCESS_RELAXED_ORDERING;
  const device::Memory& gpu = *known.gpu;
  const absl::Status synchronized = gpu.Synchronize(known.memory.data());
  if (!synchronized.ok()) {
    return absl::StrCat(port_->name(), " does not read memory of ", gpu.Name(),
                        ", because it could read before a copy has finished: ",
                        synchronized.message(), ". ", kAllocate);
  }
  const absl::StatusOr<device::DmaBuf> buffer = gpu.Export(known.memory);
  absl::StatusOr<Owned<ibv_mr>> registered =
      buffer.ok() ? port_->RegisterDmaBuf(*buffer, known.memory, kAccess)
                  : absl::StatusOr<Owned<ibv_mr>>(buffer.status());
  const absl::Status no_dma_buf = registered.status();
  if (!registered.ok()) {
    registered =
        port_->Register(const_cast<std::byte*>(known.memory.data()), known.memory.size(), kAccess);
  }
  if (!registered.ok()) {
    return absl::StrCat(
        port_->name(), " cannot read memory of ", gpu.Name(),
        ". As a dma-buf: ", no_dma_buf.message(), ". By peermem: ", registered.status().message(),
        ". Use NVIDIA's open kernel modules on the node, or load nvidia-peermem there");
  }
  way = no_dma_buf.ok() ? fabric::GpuDirectWay::kDmabuf : fabric::GpuDirectWay::kPeermem;
  known.region = Make(*std::move(registered), known);
  return "";
}

std::vector<std::shared_ptr<const UserMemory::Region>> UserMemory::Supersede(
    absl::Span<const std::byte> memory, const device::Memory& gpu) {
  const auto begin = reinterpret_cast<uintptr_t>(memory.data());
  std::vector<std::shared_ptr<const Region>> regions;
  for (auto& [other_begin, known] : known_) {
    const bool apart =
        other_begin >= begin + memory.size() || begin >= other_begin + known.memory.size();
    if (apart || (known.gpu.has_value() && known.gpu->IsSame(gpu))) continue;
    regions.push_back(std::exchange(known.region, nullptr));
    known.gpu.reset();
    known.memory = {};
  }
  return regions;
}

std::shared_ptr<const void> UserMemory::Add(Known known) {
  std::vector<std::shared_ptr<const Region>> gone;  // after the lock: that takes its time
  const std::lock_guard<std::mutex> lock(mutex_);
  if (known.gpu.has_value()) gone = Supersede(known.memory, *known.gpu);
  ++changes_;
  longest_ = std::max(longest_, known.memory.size());
  const auto begin = reinterpret_cast<uintptr_t>(known.memory.data());
  const auto added = known_.emplace(begin, std::move(known));
  return {&added->second, [self = shared_from_this(), added](const void*) { self->Forget(added); }};
}

void UserMemory::Forget(Table::iterator known) {
  Table::node_type forgotten;  // deregistered after the lock: that takes its time
  const std::lock_guard<std::mutex> lock(mutex_);
  ++changes_;
  forgotten = known_.extract(known);
}

void UserMemory::MakeRoom() {
  std::vector<std::shared_ptr<const Region>> regions;
  const std::lock_guard<std::mutex> lock(mutex_);
  ++changes_;
  for (auto& [begin, known] : known_) {
    if (known.region == nullptr || known.gpu.has_value() || known.shared) continue;
    known.log.Info(absl::StrCat(port_->name(), ": dropped the registration of ",
                                known.memory.size(),
                                " bytes, because a connection needs the lockable memory"));
    regions.push_back(std::exchange(known.region, nullptr));
  }
}

void UserMemory::TryAgain() {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++changes_;
  for (auto& [begin, known] : known_) {
    if (known.region == nullptr && !known.gpu.has_value() && !known.memory.empty()) Register(known);
  }
}

void UserMemory::RenewOwned() {
  for (auto& [begin, known] : known_) {
    if (known.owner == nullptr || known.region == nullptr || known.gpu.has_value()) continue;
    known.region = nullptr;
    Register(known);
  }
}

UserMemory::Answer UserMemory::Find(absl::Span<const std::byte> bytes) {
  const auto begin = reinterpret_cast<uintptr_t>(bytes.data());
  const std::lock_guard<std::mutex> lock(mutex_);
  const uint64_t pages = page_changes.load(std::memory_order_acquire);
  if (pages != page_changes_seen_) {
    page_changes_seen_ = pages;
    RenewOwned();
  }
  Answer answer = {changes_.load(std::memory_order_relaxed) + pages, {}};
  auto next = known_.upper_bound(begin);
  // Nothing of it is known, unless something before it reaches into it.
  size_t gap = (next != known_.end() ? next->first : UINTPTR_MAX) - begin;
  // Mostly the one that begins last before the bytes; others where pieces overlap.
  while (next != known_.begin()) {
    --next;
    const uintptr_t offset = begin - next->first;
    if (offset >= longest_) break;
    const Known& known = next->second;
    if (offset < known.memory.size()) gap = 0;
    if (!Contains(known.memory, bytes)) continue;
    if (known.region != nullptr || !answer.gpu.has_value()) {
      answer.memory = known.memory;
      answer.region = known.region;
      answer.gpu = known.gpu;
      answer.on_device = known.on_device;
    }
    if (known.region != nullptr) break;
  }
  if (gap > 0) answer.memory = {bytes.data(), gap};
  return answer;
}

const UserMemory::Answer& UserMemory::Reader::Ask(absl::Span<const std::byte> bytes) {
  const bool changed = last_.changes != memory_.changes_.load(std::memory_order_acquire) +
                                            page_changes.load(std::memory_order_acquire);
  if (changed || !Contains(last_.memory, bytes)) last_ = memory_.Find(bytes);
  return last_;
}

absl::Status UserMemory::Reader::CopyOut(absl::Span<const std::byte> bytes, std::byte* to) {
  if (memory_.gpus_.load(std::memory_order_acquire)) {
    if (const auto& gpu = Ask(bytes).gpu; gpu.has_value()) {
      return gpu->CopyOut(bytes.data(), to, bytes.size());
    }
  }
  std::memcpy(to, bytes.data(), bytes.size());
  return absl::OkStatus();
}

std::shared_ptr<const UserMemory::Region> UserMemory::Make(Owned<ibv_mr> registered,
                                                           const Known& known) const {
  known.log.Write(LogLevel::kDebug,
                  absl::StrCat(port_->name(), ": registered ", known.memory.size(), " bytes"));
  auto region = std::make_shared<Region>();
  region->port_ = port_;
  region->owner_ = known.owner;
  region->registered_ = std::move(registered);
  return region;
}

void UserMemory::Register(Known& known) const {
  // The NIC only reads it here. The table's functions take no pointers to constants.
  void* const address = const_cast<std::byte*>(known.memory.data());
  absl::StatusOr<Owned<ibv_mr>> registered =
      port_->Register(address, known.memory.size(), IBV_ACCESS_RELAXED_ORDERING);
  if (!registered.ok()) {
    known.log.Info(absl::StrCat(registered.status().message(), ". Data sent from there is copied"));
    return;
  }
  known.region = Make(*std::move(registered), known);
}

}  // namespace railhead::transport::verbs
