// SPDX-License-Identifier: Apache-2.0
//
// Interface between the watchdog (watch.h), which queries all ranks, and the observer, which knows
// this rank's activity and evaluates the replies. Implemented by HangReporter.
#ifndef RAILHEAD_RUNTIME_BOOTSTRAP_HANG_OBSERVER_H_
#define RAILHEAD_RUNTIME_BOOTSTRAP_HANG_OBSERVER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "runtime/bootstrap/inquiry.h"

namespace railhead::bootstrap {

// Called on the watchdog's thread (watch.h).
class HangObserver {
 public:
  // Intervals of the watchdog.
  struct Pace {
    absl::Duration look;    // between checks
    absl::Duration answer;  // timeout of replies of a rank's children
    absl::Duration fresh;   // minimum time between inquiries
  };
  struct Said {
    std::string name;  // of the rank
    Inquiry::Answer answer;
  };

  virtual ~HangObserver() = default;

  virtual Pace pace() const = 0;
  // Returns the time of the last sign on the rails of a rank, whose tree connection is lost, and
  // makes them request a new one. InfinitePast without rails to it, or before they connect. The
  // other rank's process must have caused the sign: a frame, an acknowledgement or a connection.
  virtual absl::Time LastSign(int /*rank*/) { return absl::InfinitePast(); }
  // The network has lost the tree connection to a rank, or it is restored. `name`: of the rank.
  virtual void Away(const std::string& /*name*/, bool /*away*/) {}
  // Returns true if this rank makes no progress and all ranks should be queried.
  virtual bool Look(absl::Time now) = 0;
  // Returns this rank's status, for the query of that number, in at most kAnswerLimit bytes.
  virtual std::string Testify(absl::Time now, uint32_t query) = 0;
  // Returns a report of all replies in at most kReportLimit bytes; `ranks` by rank. `asked` is when
  // the query began; of a rank that was not answered itself, when it requested it.
  virtual std::string Conclude(const std::vector<Said>& ranks, absl::Time asked,
                               absl::Time now) = 0;
  // Returns why the job cannot continue, after Look or Conclude; OK if it can.
  virtual absl::Status Verdict() { return absl::OkStatus(); }
  // Receives a report on this rank.
  virtual void Hear(const std::string& report, absl::Time now) = 0;
  // The job has failed, and this rank's calls know. Last call; must not block.
  virtual void Failed(const absl::Status& verdict) = 0;
};

}  // namespace railhead::bootstrap

#endif  // RAILHEAD_RUNTIME_BOOTSTRAP_HANG_OBSERVER_H_
