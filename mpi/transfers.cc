// SPDX-License-Identifier: Apache-2.0
#include "mpi/transfers.h"

#include <memory>
#include <string>
#include <utility>

#include "railhead/railhead.h"

namespace railhead::mpi {
namespace {

Outcome WrongTag(int tag) {
  return {kErrorTag, "the tag is " + std::to_string(tag) + "; it may not be negative"};
}

Outcome CheckPeer(const Group& group, int peer, const char* what, int tag, int lowest_tag) {
  return tag < lowest_tag ? WrongTag(tag) : group.CheckRank(peer, what);
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

Outcome CheckDestination(const Group& group, int to, int tag) {
  return to == kProcessNull ? Outcome() : CheckPeer(group, to, "the destination", tag, 0);
}

Outcome BeginSend(const Group& group, const void* buffer, size_t bytes, int to, int tag,
                  rhRequest_t* begun) {
  if (to == kProcessNull) return {};
  if (Outcome wrong = CheckDestination(group, to, tag); !wrong.ok()) return wrong;
  return group.Check(rhIsend(buffer, bytes, rhUint8, to, tag, group.comm(), begun));
}

Outcome BeginReceive(const Group& group, void* buffer, size_t bytes, int from, int tag,
                     rhRequest_t* begun) {
  if (from == kProcessNull) return {};
  const int rank = from == RH_ANY_SOURCE ? 0 : from;
  if (Outcome wrong = CheckPeer(group, rank, "the source", tag, RH_ANY_TAG); !wrong.ok()) {
    return wrong;
  }
  return group.Check(rhIrecv(buffer, bytes, rhUint8, from, tag, group.comm(), begun));
}

Outcome EndTransfer(rhRequest_t begun, Arrival* arrival) {
  if (begun == nullptr) return {};
  // The text of a transfer's failure is the thread's.
  Outcome outcome = OutcomeOf(rhRequestWait(begun), nullptr);
  if (outcome.ok() && arrival != nullptr) {
    rhRequestInfo_t info = {sizeof(rhRequestInfo_t), 0, 0, 0};
    outcome = OutcomeOf(rhRequestGetInfo(begun, &info), nullptr);
    *arrival = {info.peer, info.tag, info.bytes};
  }
  rhRequestFree(begun);
  return outcome;
}

Outcome Send(Group& group, const void* buffer, size_t bytes, int to, int tag, Request** request) {
  const auto begin = [&](rhRequest_t* begun) {
    return BeginSend(group, buffer, bytes, to, tag, begun);
  };
  return MakeRequest(group, begin, request);
}

Outcome Receive(Group& group, void* buffer, size_t bytes, int from, int tag, Request** request) {
  const auto begin = [&](rhRequest_t* begun) {
    return BeginReceive(group, buffer, bytes, from, tag, begun);
  };
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
