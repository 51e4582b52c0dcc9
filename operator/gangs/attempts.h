// SPDX-License-Identifier: Apache-2.0
//
// Gangs for which the API server rejected an action: time, message, and backoff per gang. Used by
// GangMachine.
#ifndef RAILHEAD_OPERATOR_GANGS_ATTEMPTS_H_
#define RAILHEAD_OPERATOR_GANGS_ATTEMPTS_H_

#include <map>
#include <set>
#include <string>

#include "absl/time/time.h"

namespace railhead::op::gangs {

// Pure; the caller passes the time. Not thread-safe.
class Attempts {
 public:
  // Up to this number of consecutive failures may be races that the watches resolve.
  static constexpr int kMayPass = 2;

  bool Due(const std::string& gang, absl::Time now) const;
  void Failed(const std::string& gang, std::string words, absl::Time now);
  void Worked(const std::string& gang) { failed_.erase(gang); }
  // Forgets all other gangs.
  void KeepOnly(const std::set<std::string>& gangs);
  // Forgets due gangs that are not in `busy`: the rejected action is no longer needed.
  void ForgetIdle(const std::set<std::string>& busy, absl::Time now);

  int FailuresOf(const std::string& gang) const;  // consecutive
  // Returns the server's last message if the failure is persistent; else empty.
  std::string WordsAbout(const std::string& gang) const;
  // Returns gangs with persistent failures.
  std::set<std::string> Failing() const;
  // Returns the next due time; InfiniteFuture if no gang failed.
  absl::Time NextDue() const;

 private:
  struct Failure {
    int times = 0;
    absl::Time due;
    std::string words;
  };
  std::map<std::string, Failure> failed_;  // by the gang's key
};

}  // namespace railhead::op::gangs

#endif  // RAILHEAD_OPERATOR_GANGS_ATTEMPTS_H_
