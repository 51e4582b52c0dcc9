// SPDX-License-Identifier: Apache-2.0
//
// Concurrent transfers of the C API: rhIsend and rhIrecv. Functions for their requests are in
// streams.cc.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "railhead/railhead.h"
#include "runtime/comm/api/arguments.h"
#include "runtime/comm/api/calls.h"
#include "runtime/comm/api/handle.h"
#include "runtime/comm/communicator/communicator.h"
#include "runtime/comm/communicator/lane.h"
#include "runtime/device/memory.h"
#include "runtime/reduce/reduce.h"
#include "runtime/transfers/engine.h"

// NOLINTBEGIN(readability-identifier-naming): these names are the C API.

namespace {

using railhead::comm::CannotUse;
using railhead::comm::Communicator;
using railhead::comm::Guard;
using railhead::comm::LaneTransfer;
using railhead::comm::NullArgument;
using railhead::comm::Report;
using railhead::comm::WrongArgument;
using railhead::transfers::Direction;

static_assert(RH_ANY_SOURCE == railhead::transfers::kAny);
static_assert(RH_ANY_TAG == railhead::transfers::kAny);

absl::Status WrongPeer(int peer, int world_size, Direction direction) {
  if (direction == Direction::kReceive && peer == RH_ANY_SOURCE) return absl::OkStatus();
  return railhead::comm::WrongRoot(peer, world_size, "peer");
}

absl::Status WrongTag(int tag, Direction direction) {
  if (tag >= 0 || (direction == Direction::kReceive && tag == RH_ANY_TAG)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("tag ", tag, " is negative; tags go from 0 to INT_MAX",
                   direction == Direction::kReceive ? ", and RH_ANY_TAG takes any" : ""));
}

// The arguments of a call.
struct Asked {
  const char* call;
  Direction direction;
  const void* buffer;
  size_t count;
  rhDataType_t datatype;
  int peer;
  int tag;
};

// Returns true if no special case applies, as for most: every message takes these few comparisons.
bool IsPlain(const Asked& asked, size_t element, rhComm_t comm) {
  constexpr size_t kMost = size_t{1} << 32U;
  if (comm == nullptr || element == 0) return false;
  if (comm->phase.load(std::memory_order_acquire) != rhComm::Phase::kReady) return false;
  const Communicator& communicator = *comm->communicator;
  return asked.buffer != nullptr && asked.count <= kMost && asked.peer >= 0 &&
         asked.peer < communicator.world_size() && asked.tag >= 0 &&
         (reinterpret_cast<uintptr_t>(asked.buffer) & (element - 1)) == 0 &&
         railhead::comm::ThreadGroup().depth == 0 && !communicator.IsForeign() &&
         communicator.memory().cuda() == nullptr;
}

absl::Status WrongArguments(const Asked& asked, size_t element, int world_size) {
  absl::Status wrong = railhead::comm::WrongType(asked.datatype);
  wrong.Update(WrongPeer(asked.peer, world_size, asked.direction));
  wrong.Update(WrongTag(asked.tag, asked.direction));
  wrong.Update(railhead::comm::WrongMessage(asked.buffer, asked.count,
                                            asked.direction == Direction::kSend, element));
  return wrong;
}

// Returns an error for GPU memory: the CPU performs these transfers and cannot access it.
absl::Status WrongMemory(const Communicator& communicator, const void* data, size_t bytes) {
  const railhead::device::CudaApi* const cuda = communicator.memory().cuda();
  if (cuda == nullptr || bytes == 0) return absl::OkStatus();
  const absl::StatusOr<std::optional<railhead::device::Memory>> memory =
      railhead::device::Memory::Find(*cuda, data);
  if (!memory.ok()) return memory.status();
  if (!memory->has_value()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "the buffer is GPU memory, which rhIsend and rhIrecv do not support; use rhSend and "
      "rhRecv, or copy it to the host");
}

// Returns rhSuccess if the transfer may begin; otherwise reports and returns the error.
[[gnu::noinline]] rhResult_t MayNotBegin(const Asked& asked, size_t element, rhComm_t comm) {
  const char* const call = asked.call;
  if (const rhResult_t cannot = CannotUse(call, comm); cannot != rhSuccess) return cannot;
  if (railhead::comm::ThreadGroup().depth > 0) {
    return Report(comm, rhInvalidUsage,
                  absl::StrCat(call,
                               ": not allowed between rhGroupStart and rhGroupEnd; call it "
                               "outside, where it does not block other calls"));
  }
  const Communicator& communicator = *comm->communicator;
  if (communicator.IsForeign()) {
    return Report(comm, rhInvalidUsage,
                  absl::StrCat(call,
                               ": the communicator belongs to the process that forked this "
                               "one; only that process may use it"));
  }
  absl::Status wrong = WrongArguments(asked, element, communicator.world_size());
  if (wrong.ok()) wrong = WrongMemory(communicator, asked.buffer, asked.count * element);
  if (wrong.ok()) return rhSuccess;
  return WrongArgument(comm, call, wrong);
}

[[gnu::noinline]] rhResult_t HasNotBegun(const char* call, rhComm_t comm,
                                         const absl::Status& begun) {
  return Report(comm, absl::Status(begun.code(), absl::StrCat(call, ": ", begun.message())));
}

rhResult_t BeginTransfer(const Asked& asked, rhComm_t comm, rhRequest_t* request) {
  return Guard(comm, [&] {
    if (request == nullptr) {
      const rhResult_t cannot = CannotUse(asked.call, comm);
      return cannot != rhSuccess ? cannot : NullArgument(comm, asked.call, "request");
    }
    *request = nullptr;
    const size_t element = railhead::reduce::SizeOf(asked.datatype);
    if (!IsPlain(asked, element, comm)) {
      const rhResult_t wrong = MayNotBegin(asked, element, comm);
      if (wrong != rhSuccess) return wrong;
    }
    auto made = std::make_unique_for_overwrite<rhRequest>();
    LaneTransfer& transfer = made->transfer;
    transfer.direction = asked.direction;
    transfer.peer = asked.peer;
    transfer.tag = asked.tag;
    // A send does not write to its buffer.
    transfer.data = static_cast<std::byte*>(const_cast<void*>(asked.buffer));
    transfer.size = asked.count * element;
    const absl::Status begun = comm->communicator->StartTransfer(transfer);
    if (!begun.ok()) return HasNotBegun(asked.call, comm, begun);
    *request = made.release();
    return rhSuccess;
  });
}

}  // namespace

rhResult_t rhIsend(const void* sendbuf, size_t count, rhDataType_t datatype, int peer, int tag,
                   rhComm_t comm, rhRequest_t* request) {
  return BeginTransfer({"rhIsend", Direction::kSend, sendbuf, count, datatype, peer, tag}, comm,
                       request);
}

rhResult_t rhIrecv(void* recvbuf, size_t count, rhDataType_t datatype, int peer, int tag,
                   rhComm_t comm, rhRequest_t* request) {
  return BeginTransfer({"rhIrecv", Direction::kReceive, recvbuf, count, datatype, peer, tag}, comm,
                       request);
}

// NOLINTEND(readability-identifier-naming)
