// SPDX-License-Identifier: Apache-2.0
//
// MPI's sends and receives by rhIsend and rhIrecv, which match by rank and tag as MPI does. All
// sends are rendezvous above 16 KiB in memory and 256 KiB over rails, as MPI allows.
#ifndef RAILHEAD_MPI_TRANSFERS_H_
#define RAILHEAD_MPI_TRANSFERS_H_

#include <cstddef>

#include "mpi/group.h"
#include "mpi/objects.h"
#include "railhead/railhead.h"

namespace railhead::mpi {

// Source, tag and size of a received message: the content of MPI_Status.
struct Arrival {
  int source = kProcessNull;
  int tag = kAnyTag;
  size_t bytes = 0;
};

// Arguments of a send or a receive.
struct Message {
  void* buffer = nullptr;  // a send does not write to it
  int count = 0;
  const Datatype* type = nullptr;
  int peer = 0;  // a rank or MPI_PROC_NULL; for a receive also MPI_ANY_SOURCE
  int tag = 0;
};

// Sets *bytes to the size of a message or of the buffer for one.
Outcome SizeOfMessage(int count, const Datatype* type, size_t* bytes);

// Check all arguments, as the functions below do, and set *bytes to the message's size.
Outcome CheckSend(const Group& group, const Message& message, size_t* bytes);
Outcome CheckReceive(const Group& group, const Message& message, size_t* bytes);

// Begin a transfer. `begun` stays null with MPI_PROC_NULL: there is nothing to wait for. Otherwise
// EndTransfer frees it.
Outcome BeginSend(const Group& group, const Message& message, rhRequest_t* begun);
Outcome BeginReceive(const Group& group, const Message& message, rhRequest_t* begun);
// Waits for the transfer and frees it, also when it has failed. `arrival` may be null; it is
// unchanged if `begun` is null.
Outcome EndTransfer(rhRequest_t begun, Arrival* arrival);

// As above, with a request for the program, until Wait or Test has ended it.
Outcome Send(Group& group, const Message& message, Request** request);
Outcome Receive(Group& group, const Message& message, Request** request);

// Waits for the transfer and frees `request`, also when it has failed.
Outcome Wait(Request* request, Arrival* arrival);
// As Wait if the transfer is done; otherwise nothing has happened and *done is false.
Outcome Test(Request* request, bool* done, Arrival* arrival);

// Sets *bytes, and returns true if no special case applies, as for most messages.
inline bool IsPlain(const Group& group, const Message& message, size_t* bytes) {
  // MPI_DATATYPE_NULL has no bytes.
  return message.type != nullptr && message.type->bytes > 0 && message.count >= 0 &&
         !__builtin_mul_overflow(static_cast<size_t>(message.count), message.type->bytes, bytes) &&
         *bytes <= size_t{1} << 32U && message.peer >= 0 && message.peer < group.size() &&
         message.tag >= 0;
}

inline Outcome BeginSend(const Group& group, const Message& message, rhRequest_t* begun) {
  size_t bytes = 0;
  if (!IsPlain(group, message, &bytes)) {
    if (Outcome wrong = CheckSend(group, message, &bytes); !wrong.ok()) return wrong;
    if (message.peer == kProcessNull) return {};
  }
  return group.Check(
      rhIsend(message.buffer, bytes, rhUint8, message.peer, message.tag, group.comm(), begun));
}

inline Outcome BeginReceive(const Group& group, const Message& message, rhRequest_t* begun) {
  size_t bytes = 0;
  if (!IsPlain(group, message, &bytes)) {
    if (Outcome wrong = CheckReceive(group, message, &bytes); !wrong.ok()) return wrong;
    if (message.peer == kProcessNull) return {};
  }
  return group.Check(
      rhIrecv(message.buffer, bytes, rhUint8, message.peer, message.tag, group.comm(), begun));
}

inline Outcome EndTransfer(rhRequest_t begun, Arrival* arrival) {
  if (begun == nullptr) return {};
  rhResult_t result = rhRequestWait(begun);
  if (result == rhSuccess && arrival != nullptr) {
    rhRequestInfo_t info;
    info.struct_size = sizeof info;
    result = rhRequestGetInfo(begun, &info);
    if (result == rhSuccess) *arrival = {info.peer, info.tag, info.bytes};
  }
  // The text of a transfer's failure is the thread's.
  Outcome outcome = OutcomeOf(result, nullptr);
  rhRequestFree(begun);
  return outcome;
}

}  // namespace railhead::mpi

#endif  // RAILHEAD_MPI_TRANSFERS_H_
