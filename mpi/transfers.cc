// SPDX-License-Identifier: Apache-2.0
#include "mpi/transfers.h"

#include <memory>
#include <string>
#include <utility>

#include "railhead/railhead.h"

namespace railhead::mpi {
namespace {

Outcome CheckPeer(const Group& group, int peer, const char* what, int tag, int lowest_tag) {
  if (tag < lowest_tag) {
    return {kErrorTag, "the tag is " + std::to_string(tag) + "; it may not be negative"};
  }
  return group.CheckRank(peer, what);
}

}  // namespace

Outcome CheckDestination(const Group& group, int to, int tag) {
  return to == kProcessNull ? Outcome() : CheckPeer(group, to, "the destination", tag, 0);
}

Outcome Send(Group& group, const void* buffer, size_t bytes, int to, int tag, Request** request) {
  auto begun = std::make_unique<Request>();
  begun->group = group.shared_from_this();
  Outcome outcome = CheckDestination(group, to, tag);
  if (outcome.ok() && to != kProcessNull) {
    outcome = group.Check(rhIsend(buffer, bytes, rhUint8, to, tag, group.comm(), &begun->transfer));
  }
  if (!outcome.ok()) return outcome;
  *request = begun.release();
  return {};
}

Outcome Receive(Group& group, void* buffer, size_t bytes, int from, int tag, Request** request) {
  auto begun = std::make_unique<Request>();
  begun->group = group.shared_from_this();
  if (from != kProcessNull) {
    Outcome outcome =
        CheckPeer(group, from == RH_ANY_SOURCE ? 0 : from, "the source", tag, RH_ANY_TAG);
    if (outcome.ok()) {
      outcome =
          group.Check(rhIrecv(buffer, bytes, rhUint8, from, tag, group.comm(), &begun->transfer));
    }
    if (!outcome.ok()) return outcome;
  }
  *request = begun.release();
  return {};
}

Outcome Wait(Request* request, Arrival* arrival) {
  const std::unique_ptr<Request> ended(request);
  if (ended->transfer == nullptr) return {};
  // The text of a transfer's failure is the thread's.
  Outcome outcome = OutcomeOf(rhRequestWait(ended->transfer), nullptr);
  if (outcome.ok()) {
    rhRequestInfo_t info = {sizeof(rhRequestInfo_t), 0, 0, 0};
    outcome = OutcomeOf(rhRequestGetInfo(ended->transfer, &info), nullptr);
    *arrival = {info.peer, info.tag, info.bytes};
  }
  rhRequestFree(ended->transfer);
  return outcome;
}

Outcome Test(Request* request, bool* done, Arrival* arrival) {
  *done = true;
  if (request->transfer != nullptr) {
    int finished = 0;
    // A failure is told by Wait, which also frees the request.
    if (rhRequestTest(request->transfer, &finished) == rhSuccess && finished == 0) {
      *done = false;
      return {};
    }
  }
  return Wait(request, arrival);
}

}  // namespace railhead::mpi
