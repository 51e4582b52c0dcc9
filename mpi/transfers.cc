// SPDX-License-Identifier: Apache-2.0
#include "mpi/transfers.h"

#include <memory>
#include <string>
#include <utility>

#include "mpi/calls.h"
#include "mpi/extents.h"
#include "railhead/railhead.h"

namespace railhead::mpi {
namespace {

// Checks the peer and the tag; `what` is the peer's name in the error.
Outcome CheckPeer(const Group& group, int peer, const char* what, int tag, int lowest_tag) {
  if (peer == kProcessNull) return {};
  if (tag >= lowest_tag) return group.CheckRank(peer, what);
  return {kErrorTag, "the tag is " + std::to_string(tag) + "; it may not be negative"};
}

// Makes a request of what `begin` begins.
template <typename Begin>
Outcome MakeRequest(Group& group, Begin begin, Request** request) {
  auto made = std::make_unique<Request>();
  Outcome outcome = begin(&made->transfer);
  if (!outcome.ok()) return outcome;
  made->group = group.shared_from_this();
  *request = made.release();
  return {};
}

}  // namespace

Outcome SizeOfMessage(int count, const Datatype* type, size_t* bytes) {
  if (Outcome wrong = CheckCount(count); !wrong.ok()) return wrong;
  if (Outcome wrong = CheckType(type); !wrong.ok()) return wrong;
  return SizeOf(count, *type, 1, bytes);
}

Outcome CheckSend(const Group& group, const Message& message, size_t* bytes) {
  return First(SizeOfMessage(message.count, message.type, bytes),
               CheckPeer(group, message.peer, "the destination", message.tag, 0));
}

Outcome CheckReceive(const Group& group, const Message& message, size_t* bytes) {
  const int rank = message.peer == RH_ANY_SOURCE ? 0 : message.peer;
  return First(SizeOfMessage(message.count, message.type, bytes),
               CheckPeer(group, rank, "the source", message.tag, RH_ANY_TAG));
}

Outcome Send(Group& group, const Message& message, Request** request) {
  const auto begin = [&](rhRequest_t* begun) { return BeginSend(group, message, begun); };
  return MakeRequest(group, begin, request);
}

Outcome Receive(Group& group, const Message& message, Request** request) {
  const auto begin = [&](rhRequest_t* begun) { return BeginReceive(group, message, begun); };
  return MakeRequest(group, begin, request);
}

Outcome Wait(Request* request, Arrival* arrival) {
  const std::unique_ptr<Request> ended(request);
  return EndTransfer(ended->transfer, arrival);
}

Outcome Test(Request* request, bool* done, Arrival* arrival) {
  *done = true;
  if (request->transfer != nullptr) {
    int finished = 0;
    // Wait reports a failure, and also frees the request.
    if (rhRequestTest(request->transfer, &finished) == rhSuccess && finished == 0) {
      *done = false;
      return {};
    }
  }
  return Wait(request, arrival);
}

}  // namespace railhead::mpi
