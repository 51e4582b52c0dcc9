// SPDX-License-Identifier: Apache-2.0
#include "plugins/nccl/memory.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/strings/str_cat.h"

namespace railhead::nccl {
namespace {

uint64_t NextNumber() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

}  // namespace

Memory::Memory(bool on_gpu) : number_(NextNumber()), on_gpu_(on_gpu) {}

absl::StatusOr<std::unique_ptr<Memory>> Memory::Register(absl::Span<comm::RdmaRail* const> rails,
                                                         absl::Span<std::byte> memory, bool on_gpu,
                                                         const device::DmaBuf* buffer,
                                                         const Logger& log) {
  std::unique_ptr<Memory> registered(new Memory(on_gpu));
  std::vector<uint32_t> keys;
  for (comm::RdmaRail* const rail : rails) {
    absl::StatusOr<std::unique_ptr<transport::SharedMemory>> shared =
        rail == nullptr ? absl::UnimplementedError("TCP rails cannot access memory of a GPU")
                        : rail->Share(memory, buffer, on_gpu, log);
    if (!shared.ok() && on_gpu) {
      return absl::Status(shared.status().code(),
                          absl::StrCat("cannot register ", memory.size(),
                                       " bytes of GPU memory: ", shared.status().message(),
                                       "; RAILHEAD_NCCL_GPU_MEMORY=off lets NCCL copy through the "
                                       "host instead"));
    }
    if (!shared.ok() && rail != nullptr) log.Info(std::string(shared.status().message()));
    keys.push_back(shared.ok() ? (*shared)->remote_key() : 0);
    registered->by_rail_.push_back(shared.ok() ? *std::move(shared) : nullptr);
  }
  const bool any = std::any_of(keys.begin(), keys.end(), [](uint32_t key) { return key != 0; });
  if (any) registered->remote_ = {reinterpret_cast<uintptr_t>(memory.data()), std::move(keys)};
  return registered;
}

absl::Status Memory::Write(std::byte* to, absl::Span<const std::byte> from) const {
  absl::Status last = absl::FailedPreconditionError("no rail can write the memory");
  // A NIC whose port is down may refuse.
  for (const std::unique_ptr<transport::SharedMemory>& rail : by_rail_) {
    if (rail == nullptr) continue;
    last = rail->Write(to, from);
    if (last.ok()) break;
  }
  return last;
}

absl::Status Memory::Flush(const std::byte* address,
                           absl::FunctionRef<bool(size_t rail)> is_up) const {
  // Writes take microseconds to become visible. It takes longer to notice that a port is down, so
  // all writes before that are visible already.
  for (size_t i = 0; i < by_rail_.size(); ++i) {
    if (by_rail_[i] == nullptr || !is_up(i)) continue;
    absl::Status flushed = by_rail_[i]->Flush(address);
    if (!flushed.ok() && !absl::IsUnavailable(flushed) && is_up(i)) return flushed;
  }
  return absl::OkStatus();
}

}  // namespace railhead::nccl
