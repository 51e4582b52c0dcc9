// SPDX-License-Identifier: Apache-2.0
//
// LocalMeeting: all ranks run on one host, and know a name that no other launch has. Rank 0 listens
// on the loopback device, at a port that the kernel chooses, and gives that port to each process of
// this user that connects to a local socket of this name (net/local_socket.h).
#ifndef RAILHEAD_RUNTIME_BOOTSTRAP_LOCAL_MEETING_H_
#define RAILHEAD_RUNTIME_BOOTSTRAP_LOCAL_MEETING_H_

#include <cstdint>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "runtime/base/halt.h"
#include "runtime/bootstrap/meeting_place.h"
#include "runtime/net/event.h"
#include "runtime/net/fd.h"

namespace railhead::bootstrap {

class LocalMeeting : public MeetingPlace {
 public:
  // `launch` names the launch and its ranks' user; any length. `described` is for messages.
  LocalMeeting(absl::string_view launch, std::string described);
  ~LocalMeeting() override;

  std::string Where() const override;
  std::string SameOnAllRanks() const override;
  absl::StatusOr<net::Fd> Open(absl::Time deadline, const Halt& halt) override;
  absl::StatusOr<net::Fd> Dial(absl::Time deadline, const Halt& halt) override;

 private:
  // Gives the port to all who connect, until the end.
  void Serve(uint16_t port) const;

  std::string name_;
  std::string described_;
  // Rank 0 only.
  net::Fd socket_;
  net::Event end_;
  std::thread server_;
};

}  // namespace railhead::bootstrap

#endif  // RAILHEAD_RUNTIME_BOOTSTRAP_LOCAL_MEETING_H_
