// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_OPERATOR_GANGS_ATTEMPTS_H_
#define RAILHEAD_OPERATOR_GANGS_ATTEMPTS_H_

#include <map>
#include <set>
#include <string>

#include "absl/time/time.h"

namespace railhead::op::gangs {

// Which gangs the API server has refused to act on, since when, and with which words. Each has a
// back-off of its own. Pure: the time comes from outside. Not thread-safe.
class Attempts {
 public:
  // So often in a row a refusal may be a race that the watches settle.
  static constexpr int kMayPass = 2;

  bool Due(const std::string& gang, absl::Time now) const;
  void Failed(const std::string& gang, std::string words, absl::Time now);
  void Worked(const std::string& gang) { failed_.erase(gang); }
  // Of others nothing is remembered.
  void KeepOnly(const std::set<std::string>& gangs);

  int FailuresOf(const std::string& gang) const;  // in a row
  // The server's last words, where they are no passing matter; else empty.
  std::string WordsAbout(const std::string& gang) const;
  // Gangs that fail for longer than a moment.
  std::set<std::string> Failing() const;
  // When the next one is due; InfiniteFuture: none waits.
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
