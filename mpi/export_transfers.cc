// SPDX-License-Identifier: Apache-2.0
// MPI's sends and receives, as programs call them. The two interfaces differ in the layout of
// MPI_Status.
#include <sched.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "mpi/calls.h"
#include "mpi/export.h"
#include "mpi/predefined.h"
#include "mpi/transfers.h"

namespace railhead::mpi {
namespace {

// MPI_Status of Open MPI's mpi.h.
struct OpenMpiStatus {
  int source;
  int tag;
  int error;
  int cancelled;
  size_t bytes;
};

// MPIABI_Status of MPItrampoline's mpiabi.h.
struct TrampolineStatus {
  OpenMpiStatus inner;
  int source;
  int tag;
  int error;
};
static_assert(sizeof(OpenMpiStatus) == 24 && sizeof(TrampolineStatus) == 40);

// Null: MPI_STATUS_IGNORE.
void Write(const Arrival& arrival, OpenMpiStatus* status, int error = kSuccess) {
  if (status != nullptr) *status = {arrival.source, arrival.tag, error, 0, arrival.bytes};
}
void Write(const Arrival& arrival, TrampolineStatus* status, int error = kSuccess) {
  if (status == nullptr) return;
  Write(arrival, &status->inner, error);
  status->source = arrival.source;
  status->tag = arrival.tag;
  status->error = error;
}

// A send does not write to its buffer.
Message SendOf(const void* buffer, int count, const Datatype* type, int to, int tag) {
  return {const_cast<void*>(buffer), count, type, to, tag};
}

// The number of elements of `size` bytes that `bytes` are; MPI_UNDEFINED if it is not a whole
// number or an int cannot hold it.
int Elements(size_t bytes, size_t size) {
  if (bytes == 0) return 0;
  if (size == 0 || bytes % size != 0) return kUndefined;
  constexpr size_t kMost = std::numeric_limits<int>::max();
  return bytes / size > kMost ? kUndefined : static_cast<int>(bytes / size);
}

template <typename Status>
int ReceiveNow(void* buffer, int count, Datatype* type, int from, int tag, Communicator* comm,
               Status* status) {
  return On("MPI_Recv", comm, [&](Group& group) {
    Arrival arrival;
    rhRequest_t begun = nullptr;
    if (Outcome wrong = BeginReceive(group, {buffer, count, type, from, tag}, &begun);
        !wrong.ok()) {
      return wrong;
    }
    Outcome outcome = EndTransfer(begun, status != nullptr ? &arrival : nullptr);
    if (outcome.ok()) Write(arrival, status);
    return outcome;
  });
}

template <typename Status>
int SendAndReceive(const void* send, int send_count, Datatype* send_type, int to, int send_tag,
                   void* receive, int count, Datatype* type, int from, int tag, Communicator* comm,
                   Status* status) {
  return On("MPI_Sendrecv", comm, [&](Group& group) {
    Arrival arrival;
    rhRequest_t sending = nullptr;
    rhRequest_t receiving = nullptr;
    const Message sent = SendOf(send, send_count, send_type, to, send_tag);
    // Before anything has begun: no later message may come into the buffer of a call that has
    // failed.
    size_t bytes = 0;
    Outcome outcome = CheckSend(group, sent, &bytes);
    if (outcome.ok()) {
      outcome = BeginReceive(group, {receive, count, type, from, tag}, &receiving);
    }
    if (outcome.ok()) outcome = BeginSend(group, sent, &sending);
    if (outcome.ok()) outcome = EndTransfer(sending, nullptr);
    // A send fails where the communicator has ended, and the receive with it.
    if (outcome.ok()) outcome = EndTransfer(receiving, &arrival);
    if (outcome.ok()) Write(arrival, status);
    return outcome;
  });
}

template <typename Status>
int SendAndReplace(void* buffer, int count, Datatype* type, int to, int send_tag, int from, int tag,
                   Communicator* comm, Status* status) {
  size_t size = 0;
  const Outcome outcome = SizeOfMessage(count, type, &size);
  if (!outcome.ok()) return Report("MPI_Sendrecv_replace", nullptr, outcome);
  const auto* bytes = static_cast<const char*>(buffer);
  const std::vector<char> copy(bytes, bytes + size);
  return SendAndReceive(copy.data(), count, type, to, send_tag, buffer, count, type, from, tag,
                        comm, status);
}

// The content of the status of no request.
constexpr Arrival kEmpty = {RH_ANY_SOURCE, kAnyTag, 0};

// Ends *request, which becomes MPI_REQUEST_NULL. A null one is done, with an empty status. `group`
// gets the group of a failure.
Outcome End(Request** request, Arrival* arrival, std::shared_ptr<Group>* group) {
  *arrival = kEmpty;
  if (*request == RequestNull()) return {};
  *arrival = {};
  std::shared_ptr<Group> own = (*request)->group;
  Outcome outcome = Wait(*request, arrival);
  *request = RequestNull();
  if (!outcome.ok()) *group = std::move(own);
  return outcome;
}

template <typename Status>
int WaitFor(const char* name, Request** request, Status* status) {
  Arrival arrival;
  std::shared_ptr<Group> group;
  const Outcome outcome = End(request, &arrival, &group);
  if (!outcome.ok()) return Report(name, group.get(), outcome);
  Write(arrival, status);
  return kSuccess;
}

// If some have failed, the result is MPI_ERR_IN_STATUS, and the status of each has its own.
template <typename Status>
int WaitForAll(const char* name, int count, Request** requests, Status* statuses) {
  Outcome first;
  std::shared_ptr<Group> first_group;
  for (int i = 0; i < count; ++i) {
    Arrival arrival;
    std::shared_ptr<Group> group;
    Outcome outcome = End(&requests[i], &arrival, &group);
    if (statuses != nullptr) Write(arrival, &statuses[i], outcome.error);
    // Groups may have different error handlers. One that ends the process does not wait for others.
    if (!outcome.ok()) Report(name, group.get(), outcome);
    if (first.ok() && !outcome.ok()) {
      first = {kErrorInStatus, std::move(outcome.text)};
      first_group = std::move(group);
    }
  }
  return first.ok() ? kSuccess : Report(name, first_group.get(), first);
}

// Returns the number of requests that are done, and tests each once. `first`: index of the first of
// these; `pending`: number of requests that are not null.
int CountDone(int count, Request* const* requests, int* first, int* pending) {
  int done = 0;
  *first = kUndefined;
  *pending = 0;
  for (int i = 0; i < count; ++i) {
    if (requests[i] == RequestNull()) continue;
    ++*pending;
    int finished = 1;
    if (requests[i]->transfer != nullptr) rhRequestTest(requests[i]->transfer, &finished);
    if (finished == 0) continue;
    ++done;
    if (*first == kUndefined) *first = i;
  }
  return done;
}

template <typename Status>
int TestForAll(int count, Request** requests, int* flag, Status* statuses) {
  int first = 0;
  int pending = 0;
  *flag = CountDone(count, requests, &first, &pending) == pending ? 1 : 0;
  return *flag == 1 ? WaitForAll("MPI_Testall", count, requests, statuses) : kSuccess;
}

template <typename Status>
int WaitForAny(int count, Request** requests, int* index, Status* status) {
  for (int pending = 0;;) {
    if (CountDone(count, requests, index, &pending) > 0) {
      return WaitFor("MPI_Waitany", &requests[*index], status);
    }
    if (pending == 0) {
      Write(kEmpty, status);
      return kSuccess;
    }
    sched_yield();  // the library has no wait for one of several
  }
}

template <typename Status>
int TestFor(Request** request, int* flag, Status* status) {
  *flag = 1;
  if (*request == RequestNull()) return WaitFor("MPI_Test", request, status);
  const std::shared_ptr<Group> group = (*request)->group;
  Arrival arrival;
  bool done = false;
  const Outcome outcome = Test(*request, &done, &arrival);
  *flag = done ? 1 : 0;
  if (done) *request = RequestNull();
  if (!outcome.ok()) return Report("MPI_Test", group.get(), outcome);
  if (done) Write(arrival, status);
  return kSuccess;
}

}  // namespace

RAILHEAD_MPI(Send, const void* buffer, int count, Datatype* type, int to, int tag,
             Communicator* comm) {
  return On("MPI_Send", comm, [&](Group& group) {
    rhRequest_t begun = nullptr;
    if (Outcome wrong = BeginSend(group, SendOf(buffer, count, type, to, tag), &begun);
        !wrong.ok()) {
      return wrong;
    }
    return EndTransfer(begun, nullptr);
  });
}

RAILHEAD_MPI(Isend, const void* buffer, int count, Datatype* type, int to, int tag,
             Communicator* comm, Request** request) {
  return On("MPI_Isend", comm, [&](Group& group) {
    return Send(group, SendOf(buffer, count, type, to, tag), request);
  });
}

RAILHEAD_MPI(Irecv, void* buffer, int count, Datatype* type, int from, int tag, Communicator* comm,
             Request** request) {
  return On("MPI_Irecv", comm, [&](Group& group) {
    return Receive(group, {buffer, count, type, from, tag}, request);
  });
}

// A ready send may assume that the receive is posted. A standard send does not need to.
RAILHEAD_MPI(Rsend, const void* buffer, int count, Datatype* type, int to, int tag,
             Communicator* comm) {
  return MPI_Send(buffer, count, type, to, tag, comm);
}
RAILHEAD_MPI(Irsend, const void* buffer, int count, Datatype* type, int to, int tag,
             Communicator* comm, Request** request) {
  return MPI_Isend(buffer, count, type, to, tag, comm, request);
}

RAILHEAD_MPI(Get_count, const OpenMpiStatus* status, Datatype* type, int* count) {
  // A status of MPItrampoline begins with one of Open MPI.
  if (Outcome outcome = CheckType(type); !outcome.ok()) {
    return Report("MPI_Get_count", nullptr, outcome);
  }
  *count = Elements(status->bytes, type->bytes);
  return kSuccess;
}

// Functions with a status, once for each of the two.
// NOLINTBEGIN(bugprone-macro-parentheses): `Status` is a type.
#define RAILHEAD_MPI_STATUS(prefix, Status)                                                        \
  extern "C" RAILHEAD_MPI_VISIBLE int prefix##Recv(void* buffer, int count, Datatype* type,        \
                                                   int from, int tag, Communicator* comm,          \
                                                   Status* status) {                               \
    return ReceiveNow(buffer, count, type, from, tag, comm, status);                               \
  }                                                                                                \
  extern "C" RAILHEAD_MPI_VISIBLE int prefix##Sendrecv(                                            \
      const void* send, int send_count, Datatype* send_type, int to, int send_tag, void* receive,  \
      int count, Datatype* type, int from, int tag, Communicator* comm, Status* status) {          \
    return SendAndReceive(send, send_count, send_type, to, send_tag, receive, count, type, from,   \
                          tag, comm, status);                                                      \
  }                                                                                                \
  extern "C" RAILHEAD_MPI_VISIBLE int prefix##Wait(Request** request, Status* status) {            \
    return WaitFor("MPI_Wait", request, status);                                                   \
  }                                                                                                \
  extern "C" RAILHEAD_MPI_VISIBLE int prefix##Waitall(int count, Request** requests,               \
                                                      Status* statuses) {                          \
    return WaitForAll("MPI_Waitall", count, requests, statuses);                                   \
  }                                                                                                \
  extern "C" RAILHEAD_MPI_VISIBLE int prefix##Sendrecv_replace(                                    \
      void* buffer, int count, Datatype* type, int to, int send_tag, int from, int tag,            \
      Communicator* comm, Status* status) {                                                        \
    return SendAndReplace(buffer, count, type, to, send_tag, from, tag, comm, status);             \
  }                                                                                                \
  extern "C" RAILHEAD_MPI_VISIBLE int prefix##Testall(int count, Request** requests, int* flag,    \
                                                      Status* statuses) {                          \
    return TestForAll(count, requests, flag, statuses);                                            \
  }                                                                                                \
  extern "C" RAILHEAD_MPI_VISIBLE int prefix##Waitany(int count, Request** requests, int* index,   \
                                                      Status* status) {                            \
    return WaitForAny(count, requests, index, status);                                             \
  }                                                                                                \
  extern "C" RAILHEAD_MPI_VISIBLE int prefix##Test(Request** request, int* flag, Status* status) { \
    return TestFor(request, flag, status);                                                         \
  }
// NOLINTEND(bugprone-macro-parentheses)
RAILHEAD_MPI_STATUS(MPI_, OpenMpiStatus)
RAILHEAD_MPI_STATUS(MPIABI_, TrampolineStatus)
#undef RAILHEAD_MPI_STATUS

}  // namespace railhead::mpi
