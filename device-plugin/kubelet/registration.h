// SPDX-License-Identifier: Apache-2.0
//
// Decides when to offer our socket and when to register with kubelet, through kubelet restarts,
// deleted sockets and cut streams.
//
// A reconciler, not a chain of events: whoever owns it looks at the world, asks Decide, does the
// one thing it says, and asks again at the latest at `wake_at`. An event that was missed is only a
// look that comes later. It makes no system call and has no clock of its own.
//
// What kubelet does, and what follows from it:
// - At its start it deletes every socket in its folder and makes a new kubelet.sock: serve again,
//   register again.
// - It opens one ListAndWatch stream per registration and never opens it again: a stream that ends
//   means a new registration, with back-off.
// - When a stream ends, kubelet (1.36.3) disconnects whichever client is registered under the
//   resource's name at that moment. A registration made while an old stream is still ending would
//   be torn down with it: so end the old stream, wait for its end and a moment more, then register.
#ifndef RAILHEAD_DEVICE_PLUGIN_KUBELET_REGISTRATION_H_
#define RAILHEAD_DEVICE_PLUGIN_KUBELET_REGISTRATION_H_

#include <chrono>
#include <cstdint>
#include <optional>

namespace railhead::device_plugin {

using TimePoint = std::chrono::steady_clock::time_point;
using Duration = std::chrono::steady_clock::duration;

// Which incarnation of a socket file this is. The inode number alone is not enough: file systems
// give the number of a deleted file to the next one.
struct SocketIdentity {
  uint64_t device = 0;
  uint64_t inode = 0;
  int64_t changed_ns = 0;

  bool operator==(const SocketIdentity&) const = default;
};

// What can be seen of the world.
struct Observation {
  bool has_devices = false;               // there is something to offer
  std::optional<SocketIdentity> kubelet;  // kubelet.sock, when it is there
  bool own_socket = false;                // we serve, and our socket file is in its place
  int open_streams = 0;                   // ListAndWatch streams that are open now
  uint64_t streams_opened = 0;            // since the program began
};

enum class Action {
  kWait,        // nothing to do until something changes or wake_at comes
  kServe,       // serve on a new socket; streams of an old one end
  kEndStreams,  // ask the open streams to end
  kRegister,    // call Register, and report its end with RegisterFinished
};

struct Decision {
  Action action = Action::kWait;
  TimePoint wake_at;
};

// Not thread-safe: one thread owns it.
class Registration {
 public:
  struct Timing {
    Duration poll = std::chrono::seconds(5);            // look at least this often
    Duration settle = std::chrono::milliseconds(250);   // from the end of a stream to Register
    Duration end_streams = std::chrono::seconds(5);     // for asked streams to end
    Duration await_stream = std::chrono::seconds(10);   // from Register to ListAndWatch
    Duration register_call = std::chrono::seconds(20);  // for RegisterFinished to come
    Duration first_retry = std::chrono::milliseconds(200);
    Duration last_retry = std::chrono::seconds(10);
    Duration stable = std::chrono::seconds(30);  // a stream this old proves that all is well
  };

  Registration() = default;
  explicit Registration(const Timing& timing) : timing_(timing) {}

  Decision Decide(const Observation& seen, TimePoint now);

  // The Register call that the latest kRegister asked for has ended.
  void RegisterFinished(bool ok, TimePoint now);

  // Serving on a new socket failed; it will be asked for again after a pause.
  void ServeFailed(TimePoint now);

  // Kubelet holds a stream that belongs to the current registration.
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
  TimePoint since_;                        // when the phase began
  TimePoint retry_at_;                     // no registration before this
  TimePoint serve_at_;                     // no new socket before this
  Duration pause_ = Duration::zero();      // the latest pause between attempts
  std::optional<SocketIdentity> kubelet_;  // the kubelet of the current attempt or stream
  uint64_t opened_before_ = 0;             // streams_opened when settling began
};

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_KUBELET_REGISTRATION_H_
