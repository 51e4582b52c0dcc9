// SPDX-License-Identifier: Apache-2.0
//
// Meeting place: how the ranks of a job find rank 0. Used by Bootstrap; one object per rank and
// rendezvous.
//
//   MasterAddress (master_address.h)  rank 0 listens at an address that all ranks know
//   AgentStore (agent_store.h)        rank 0 publishes its port in the store of torchrun's agent
//   LocalMeeting (local_meeting.h)    all ranks run on this host, and know the name of the launch
//
// Not thread-safe.
#ifndef RAILHEAD_RUNTIME_BOOTSTRAP_MEETING_PLACE_H_
#define RAILHEAD_RUNTIME_BOOTSTRAP_MEETING_PLACE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/base/halt.h"
#include "runtime/net/fd.h"

namespace railhead::bootstrap {

class MeetingPlace {
 public:
  MeetingPlace() = default;
  virtual ~MeetingPlace() = default;
  MeetingPlace(const MeetingPlace&) = delete;
  MeetingPlace& operator=(const MeetingPlace&) = delete;

  // Returns the place for messages: "10.0.0.1:29500".
  virtual std::string Where() const = 0;

  // Values that may be wrong on ranks that do not arrive, for messages: "their MASTER_ADDR match".
  virtual std::string SameOnAllRanks() const = 0;

  // Rank 0: returns a listening socket, which the other ranks find while this object exists.
  // AlreadyExists if another process has the place.
  virtual absl::StatusOr<net::Fd> Open(absl::Time deadline, const Halt& halt) = 0;

  // Connects to rank 0, in one attempt. After Unimplemented, further attempts are useless.
  virtual absl::StatusOr<net::Fd> Dial(absl::Time deadline, const Halt& halt) = 0;
};

}  // namespace railhead::bootstrap

#endif  // RAILHEAD_RUNTIME_BOOTSTRAP_MEETING_PLACE_H_
