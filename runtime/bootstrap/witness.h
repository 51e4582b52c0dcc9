// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_RUNTIME_BOOTSTRAP_WITNESS_H_
#define RAILHEAD_RUNTIME_BOOTSTRAP_WITNESS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "runtime/bootstrap/inquiry.h"

namespace railhead::bootstrap {

// Knows what this rank is doing, and makes something of what all say. Used by the watch's thread
// (watch.h).
class Witness {
 public:
  // How patient the watch is.
  struct Pace {
    absl::Duration look;    // between two looks
    absl::Duration answer;  // for the answers of a rank's children
    absl::Duration fresh;   // after a report there is no other inquiry for so long
  };
  struct Said {
    std::string name;  // the rank's
    Inquiry::Answer answer;
  };

  virtual ~Witness() = default;

  virtual Pace pace() const = 0;
  // Whether this rank stands still, and everybody should be asked.
  virtual bool Look(absl::Time now) = 0;
  // What this rank is doing; at most kAnswerLimit bytes.
  virtual std::string Testify(absl::Time now) = 0;
  // What comes of what all have said, in at most kReportLimit bytes; `ranks` by rank.
  virtual std::string Conclude(const std::vector<Said>& ranks) = 0;
  // Why the job cannot go on, by what was last concluded; OK if it can.
  virtual absl::Status Verdict() { return absl::OkStatus(); }
  // That is known to this rank.
  virtual void Hear(const std::string& report, absl::Time now) = 0;
  // The job has failed, and this rank's calls know it. The last that is called; it does not wait.
  virtual void Failed(const absl::Status& verdict) = 0;
};

}  // namespace railhead::bootstrap

#endif  // RAILHEAD_RUNTIME_BOOTSTRAP_WITNESS_H_
