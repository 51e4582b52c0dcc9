// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/api/on_host.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "runtime/base/parts.h"
#include "runtime/base/round_up.h"
#include "runtime/collectives/collective.h"
#include "runtime/device/memory.h"
#include "runtime/rails/peer.h"

namespace railhead::comm {
namespace {

using collectives::Collective;
using collectives::Operation;
using collectives::Transfer;
using device::Memory;
using Direction = Transfer::Direction;

// The bytes that a call reads or writes in a buffer of this rank: all of them, or those of `parts`.
struct Area {
  const void* data = nullptr;
  size_t bytes = 0;              // 0: the call does not use the buffer
  const Parts* parts = nullptr;  // in bytes
};

// Returns the area of a buffer that has a block of each rank.
Area AreaOf(const void* data, const Parts& parts, const Operation& operation) {
  // Between listed parts there may be bytes of others; reduce-scatter has none there.
  const bool whole = parts.equal() || Reduces(operation.collective);
  return {data, parts.end() * operation.element(), whole ? nullptr : &parts};
}

Area SendArea(const Operation& operation, int rank) {
  const auto ranks = static_cast<size_t>(operation.ranks);
  if (operation.send_parts.ranks() > 0) {
    return AreaOf(operation.send, operation.send_parts, operation);
  }
  if (operation.receive_parts.ranks() > 0) {
    return {operation.send, operation.receive_parts[static_cast<size_t>(rank)].size};
  }
  const size_t blocks = ShapeOf(operation.collective).SendBlocks(ranks, rank == operation.root);
  return {operation.send, blocks * operation.count * operation.element()};
}

Area ReceiveArea(const Operation& operation, int rank) {
  const auto ranks = static_cast<size_t>(operation.ranks);
  if (operation.receive_parts.ranks() > 0) {
    return AreaOf(operation.receive, operation.receive_parts, operation);
  }
  if (operation.send_parts.ranks() > 0) {
    const size_t own = operation.send_parts[static_cast<size_t>(rank)].size;
    return {operation.receive, own * operation.element()};
  }
  const size_t blocks = ShapeOf(operation.collective).ReceiveBlocks(ranks, rank == operation.root);
  return {operation.receive, blocks * operation.count * operation.element()};
}

// Buffers that share pinned memory start at multiples of this, so that they are aligned for every
// type.
constexpr size_t kLine = 64;

// Returns the GPU memory of an area; nullopt for host memory. Sets `wrong` if the driver fails, or
// if the area was registered as GPU memory and has been freed since.
std::optional<Memory> Find(const Communicator& communicator, const device::CudaApi& cuda,
                           const Area& area, absl::Status& wrong) {
  if (area.bytes == 0) return std::nullopt;
  absl::StatusOr<std::optional<Memory>> memory = Memory::Find(cuda, area.data);
  wrong.Update(memory.status());
  if (!memory.ok()) return std::nullopt;
  if (!memory->has_value() && communicator.memory().known_gpus().Holds(area.data)) {
    wrong.Update(absl::FailedPreconditionError(
        "a GPU buffer that was registered with rhCommRegister has been freed; call "
        "rhCommDeregister before freeing it"));
  }
  return *std::move(memory);
}

// The user's buffer; written to only if the call may.
std::byte* Begin(const Area& area) { return static_cast<std::byte*>(const_cast<void*>(area.data)); }
const std::byte* End(const Area& area) { return Begin(area) + area.bytes; }

bool Overlap(const Area& one, const Area& other) {
  return one.bytes > 0 && other.bytes > 0 && Begin(one) < End(other) && Begin(other) < End(one);
}

// Calls each(offset, bytes) for the used parts of an area.
absl::Status ForEachPart(const Area& area,
                         absl::FunctionRef<absl::Status(size_t offset, size_t bytes)> each) {
  if (area.parts == nullptr) return each(0, area.bytes);
  for (size_t rank = 0; rank < area.parts->ranks(); ++rank) {
    const Range part = (*area.parts)[rank];
    if (part.size == 0) continue;
    if (absl::Status done = each(part.begin, part.size); !done.ok()) return done;
  }
  return absl::OkStatus();
}

// Returns true if rails read the data of a transfer directly from GPU memory. Smaller transfers are
// copied when they are posted (rails/peer.h), and transfers to this rank itself are copied here.
bool IsRead(const Communicator& communicator, const Transfer& transfer, const Memory& memory) {
  return transfer.direction == Direction::kSend && transfer.bytes > rails::kCopied &&
         transfer.peer != communicator.rank() &&
         communicator.memory().ReadsGpu({transfer.data, transfer.bytes}, memory, transfer.peer);
}

absl::Status CopyOut(const Memory& memory, const Area& area, std::byte* to) {
  return ForEachPart(area, [&](size_t offset, size_t bytes) {
    return memory.CopyOut(Begin(area) + offset, to + offset, bytes);
  });
}

absl::Status CopyIn(const Memory& memory, const std::byte* from, const Area& area) {
  std::byte* const to = Begin(area);
  return ForEachPart(area, [&](size_t offset, size_t bytes) {
    return memory.CopyIn(from + offset, to + offset, bytes);
  });
}

// Runs it with copies in host memory of what is in GPU memory.
absl::Status RunOnCopies(const char* call, Communicator& communicator, const device::CudaApi& cuda,
                         const Operation& operation,
                         absl::FunctionRef<absl::Status(const Operation& on_host)> run) {
  const Area send = SendArea(operation, communicator.rank());
  const Area receive = ReceiveArea(operation, communicator.rank());
  absl::Status staged;
  const std::optional<Memory> send_memory = Find(communicator, cuda, send, staged);
  const std::optional<Memory> receive_memory = Find(communicator, cuda, receive, staged);
  if (!staged.ok()) return communicator.GiveUp(call, staged);
  Operation on_host = operation;
  // Returns `bytes` bytes of pinned host memory that replace memory of a GPU.
  const auto stand_in = [&](device::PinnedMemory& pinned, size_t bytes, const Memory& memory) {
    const absl::StatusOr<std::byte*> host = pinned.Get(bytes, memory);
    staged.Update(host.status());
    return host.value_or(nullptr);
  };
  DirectMemory::Staging& memory = communicator.memory().staging();
  if (send_memory.has_value() && Overlap(send, receive)) {
    // In place: the host copies must have the same distance from each other.
    std::byte* const begin = std::min(Begin(send), Begin(receive));
    const std::byte* const end = std::max(End(send), End(receive));
    std::byte* const host =
        stand_in(memory.receive, static_cast<size_t>(end - begin), *send_memory);
    if (host != nullptr) {
      on_host.send = host + (Begin(send) - begin);
      on_host.receive = host + (Begin(receive) - begin);
    }
  } else {
    if (send_memory.has_value()) on_host.send = stand_in(memory.send, send.bytes, *send_memory);
    if (receive_memory.has_value()) {
      on_host.receive = stand_in(memory.receive, receive.bytes, *receive_memory);
    }
  }
  if (staged.ok() && send_memory.has_value()) {
    staged = CopyOut(*send_memory, send, const_cast<std::byte*>(on_host.send));
  }
  if (!staged.ok()) return communicator.GiveUp(call, staged);
  if (absl::Status done = run(on_host); !done.ok()) return done;
  if (receive_memory.has_value()) staged = CopyIn(*receive_memory, on_host.receive, receive);
  return staged.ok() ? staged : communicator.GiveUp(call, staged);
}

// Runs a broadcast of the root's GPU memory, which rails read.
absl::Status BroadcastFromGpu(const char* call, Communicator& communicator,
                              const device::CudaApi& cuda, const Memory& memory,
                              const Operation& operation) {
  const size_t bytes = operation.count;
  absl::Status wrong;
  const std::optional<Memory> to = Find(communicator, cuda, {operation.receive, bytes}, wrong);
  if (!wrong.ok()) return communicator.GiveUp(call, wrong);
  // The user's buffer: in place, this rank writes nothing, and only rails read it.
  auto* const data = const_cast<std::byte*>(operation.send);
  {
    const DirectMemory::NothingCopied nothing_copied(communicator.memory());
    Operation in_place = operation;
    in_place.receive = data;
    if (absl::Status done = communicator.Run(in_place); !done.ok()) return done;
  }
  if (data == operation.receive) return absl::OkStatus();
  absl::Status copied = to.has_value() ? memory.CopyWithin(data, operation.receive, bytes)
                                       : memory.CopyOut(data, operation.receive, bytes);
  return copied.ok() ? copied : communicator.GiveUp(call, copied);
}

}  // namespace

absl::Status RunStaged(const char* call, Communicator& communicator, const device::CudaApi& cuda,
                       const Operation& operation,
                       absl::FunctionRef<absl::Status(const Operation& on_host)> run) {
  // Small data is copied once here, instead of once for each rank that it is sent to.
  const bool may_be_read = operation.collective == Collective::kBroadcast &&
                           operation.root == communicator.rank() &&
                           operation.count > rails::kCopied;
  if (may_be_read) {
    absl::Status wrong;
    const Area send = {operation.send, operation.count};
    const std::optional<Memory> memory = Find(communicator, cuda, send, wrong);
    if (!wrong.ok()) return communicator.GiveUp(call, wrong);
    if (memory.has_value() &&
        communicator.memory().BroadcastsGpu({operation.send, send.bytes}, *memory)) {
      return BroadcastFromGpu(call, communicator, cuda, *memory, operation);
    }
  }
  return RunOnCopies(call, communicator, cuda, operation, run);
}

absl::Status CopyToHost(const Communicator& communicator, const void* from, size_t bytes,
                        std::byte* to) {
  if (const device::CudaApi* const cuda = communicator.memory().cuda(); cuda != nullptr) {
    const absl::StatusOr<std::optional<Memory>> memory = Memory::Find(*cuda, from);
    if (!memory.ok()) return memory.status();
    if (memory->has_value()) {
      return (*memory)->CopyOut(static_cast<const std::byte*>(from), to, bytes);
    }
  }
  std::memcpy(to, from, bytes);
  return absl::OkStatus();
}

absl::Status Transfer(const char* call, Communicator& communicator,
                      absl::Span<const collectives::Transfer> transfers) {
  const device::CudaApi* const cuda = communicator.memory().cuda();
  if (cuda == nullptr) return communicator.Transfer(transfers);
  // Each staged buffer has its own part of the pinned memory.
  struct Staged {
    size_t index;
    Memory memory;
    size_t offset;
  };
  std::vector<Staged> staged;
  size_t bytes = 0;
  absl::Status wrong;
  // Set while rails read GPU memory: a CPU that copied it would crash.
  std::optional<DirectMemory::NothingCopied> nothing_copied;
  for (size_t i = 0; i < transfers.size(); ++i) {
    const collectives::Transfer& transfer = transfers[i];
    const std::optional<Memory> memory =
        Find(communicator, *cuda, {transfer.data, transfer.bytes}, wrong);
    if (!memory.has_value()) continue;
    if (IsRead(communicator, transfer, *memory)) {
      if (!nothing_copied.has_value()) nothing_copied.emplace(communicator.memory());
      continue;
    }
    staged.push_back({i, *memory, bytes});
    bytes += RoundUp(transfer.bytes, kLine);
  }
  if (!wrong.ok()) return communicator.GiveUp(call, wrong);
  if (staged.empty()) return communicator.Transfer(transfers);
  std::vector<collectives::Transfer> on_host(transfers.begin(), transfers.end());
  const absl::StatusOr<std::byte*> host =
      communicator.memory().staging().send.Get(bytes, staged.front().memory);
  if (!host.ok()) return communicator.GiveUp(call, host.status());
  for (const Staged& one : staged) {
    collectives::Transfer& transfer = on_host[one.index];
    transfer.data = *host + one.offset;
    if (transfer.direction != Direction::kSend) continue;
    absl::Status copied =
        one.memory.CopyOut(transfers[one.index].data, transfer.data, transfer.bytes);
    if (!copied.ok()) return communicator.GiveUp(call, copied);
  }
  if (absl::Status done = communicator.Transfer(on_host); !done.ok()) return done;
  for (const Staged& one : staged) {
    const collectives::Transfer& transfer = on_host[one.index];
    if (transfer.direction != Direction::kReceive) continue;
    absl::Status copied =
        one.memory.CopyIn(transfer.data, transfers[one.index].data, transfer.bytes);
    if (!copied.ok()) return communicator.GiveUp(call, copied);
  }
  return absl::OkStatus();
}

}  // namespace railhead::comm
