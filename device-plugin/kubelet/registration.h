// SPDX-License-Identifier: Apache-2.0
//
// Decides when to open a socket and when to register with kubelet, through restarts of kubelet,
// deleted sockets and broken streams. Pure: no system calls, no clock. Used by ResourcePlugin.
//
// A reconciler: the owner observes, calls Decide, performs the one action it returns, and calls it
// again no later than `wake_at`. A missed event only delays the next observation.
//
// Behaviour of kubelet, and the consequences:
// - At start it deletes every socket in its directory and creates a new kubelet.sock: open a socket
//   and register again.
// - It opens one ListAndWatch stream per registration and never reopens it: after a stream ends,
//   register again, with backoff.
// - When a stream ends, kubelet (1.36.3) disconnects the client registered under the resource's
//   name at that moment, even a new one. So end the old stream, wait for its end and a moment more,
//   then register.
#ifndef RAILHEAD_DEVICE_PLUGIN_KUBELET_REGISTRATION_H_
#define RAILHEAD_DEVICE_PLUGIN_KUBELET_REGISTRATION_H_

#include <chrono>
#include <cstdint>
#include <optional>

#include "device-plugin/devices/time_point.h"

namespace railhead::device_plugin {

// Identifies one incarnation of a socket file. The inode number alone is not enough: file systems
// reuse it.
struct SocketIdentity {
  uint64_t device = 0;
  uint64_t inode = 0;
  int64_t changed_ns = 0;

  bool operator==(const SocketIdentity&) const = default;
};

// Observed state.
struct Observation {
  bool has_devices = false;               // there are devices to offer
  std::optional<SocketIdentity> kubelet;  // kubelet.sock, if it exists
  bool own_socket = false;                // the plugin serves, and its socket file exists
  int open_streams = 0;                   // open ListAndWatch streams
  uint64_t streams_opened = 0;            // since the program started
};

enum class Action {
  kWait,        // do nothing until a change or wake_at
  kServe,       // serve on a new socket; ends streams of an old one
  kEndStreams,  // end the open streams
  kRegister,    // call Register, and report its result with RegisterFinished
};

struct Decision {
  Action action = Action::kWait;
  TimePoint wake_at;
};

// Not thread-safe: use from one thread.
class Registration {
 public:
  struct Timing {
    Duration poll = std::chrono::seconds(5);            // maximum time between observations
    Duration settle = std::chrono::milliseconds(250);   // from the end of a stream to Register
    Duration end_streams = std::chrono::seconds(5);     // for streams to end
    Duration await_stream = std::chrono::seconds(10);   // from Register to ListAndWatch
    Duration register_call = std::chrono::seconds(20);  // for RegisterFinished
    Duration first_retry = std::chrono::milliseconds(200);
    Duration last_retry = std::chrono::seconds(10);
    Duration stable = std::chrono::seconds(30);  // a stream of this age resets the backoff
  };

  Registration() = default;
  explicit Registration(const Timing& timing) : timing_(timing) {}

  Decision Decide(const Observation& seen, TimePoint now);

  // Reports the result of the last kRegister.
  void RegisterFinished(bool ok, TimePoint now);

  // Reports that kServe failed; it is returned again after a delay.
  void ServeFailed(TimePoint now);

  // Kubelet has a stream of the current registration.
  bool serving() const { return phase_ == Phase::kServing; }

 private:
  enum class Phase { kIdle, kEnding, kSettling, kRegistering, kAwaitingStream, kServing };

  Decision Wait(TimePoint until, TimePoint now) const;
  Decision Serve(TimePoint now);
  void Retry(TimePoint now);
  void Settle(const Observation& seen, TimePoint now);
  void Enter(Phase phase, TimePoint now);

  Timing timing_;
  Phase phase_ = Phase::kIdle;
  TimePoint since_;                        // start of the phase
  TimePoint retry_at_;                     // no registration before
  TimePoint serve_at_;                     // no new socket before
  Duration pause_ = Duration::zero();      // last delay between attempts
  std::optional<SocketIdentity> kubelet_;  // kubelet of the current attempt or stream
  uint64_t opened_before_ = 0;             // streams_opened at the start of kSettling
};

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_KUBELET_REGISTRATION_H_
