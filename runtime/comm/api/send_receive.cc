// SPDX-License-Identifier: Apache-2.0
//
// Sends and receives of the C API that are calls of a communicator, in the order of its other
// calls: rhSend and rhRecv.
#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "railhead/railhead.h"
#include "runtime/collectives/point_to_point.h"
#include "runtime/comm/api/arguments.h"
#include "runtime/comm/api/calls.h"
#include "runtime/comm/api/handle.h"
#include "runtime/comm/api/on_host.h"
#include "runtime/comm/communicator/communicator.h"
#include "runtime/reduce/reduce.h"

// NOLINTBEGIN(readability-identifier-naming): these names are the C API.

namespace {

using railhead::collectives::Transfer;
using railhead::comm::CannotUse;
using railhead::comm::Communicator;
using railhead::comm::Guard;
using railhead::comm::Submit;
using railhead::comm::ThreadGroup;
using railhead::comm::WrongArgument;

rhResult_t AddTransfer(const char* call, Transfer::Direction direction, const void* buffer,
                       size_t count, rhDataType_t datatype, int peer, rhComm_t comm,
                       rhStream_t stream) {
  return Guard(comm, [&] {
    if (const rhResult_t cannot = CannotUse(call, comm); cannot != rhSuccess) return cannot;
    const size_t element = railhead::reduce::SizeOf(datatype);
    absl::Status wrong = railhead::comm::WrongType(datatype);
    wrong.Update(railhead::comm::WrongRoot(peer, comm->communicator->world_size(), "peer"));
    wrong.Update(railhead::comm::WrongMessage(buffer, count,
                                              direction == Transfer::Direction::kSend, element));
    if (!wrong.ok()) return WrongArgument(comm, call, wrong);
    // A send does not write to its buffer.
    const Transfer transfer = {direction, peer, static_cast<std::byte*>(const_cast<void*>(buffer)),
                               count * element};
    if (ThreadGroup().depth > 0) {
      auto& part = ThreadGroup().Of(call, comm, stream);
      if (part.transfers.empty()) part.transfer_name = call;
      part.transfers.push_back(transfer);
      return rhSuccess;
    }
    if (const absl::Status own =
            railhead::collectives::WrongOwn(comm->communicator->rank(), {&transfer, 1});
        !own.ok()) {
      return WrongArgument(comm, call, own);
    }
    return Submit(call, comm, stream, [call, transfer](Communicator& communicator) {
      return railhead::comm::Transfer(call, communicator, {transfer});
    });
  });
}

}  // namespace

rhResult_t rhSend(const void* sendbuf, size_t count, rhDataType_t datatype, int peer, rhComm_t comm,
                  rhStream_t stream) {
  return AddTransfer("rhSend", Transfer::Direction::kSend, sendbuf, count, datatype, peer, comm,
                     stream);
}

rhResult_t rhRecv(void* recvbuf, size_t count, rhDataType_t datatype, int peer, rhComm_t comm,
                  rhStream_t stream) {
  return AddTransfer("rhRecv", Transfer::Direction::kReceive, recvbuf, count, datatype, peer, comm,
                     stream);
}

// NOLINTEND(readability-identifier-naming)
