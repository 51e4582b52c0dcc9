// SPDX-License-Identifier: Apache-2.0
//
// File of the flight recorder, written when a job fails: one per rank. The runtime's README
// describes its fields.
#ifndef RAILHEAD_RUNTIME_RECORDER_FLIGHT_FILE_H_
#define RAILHEAD_RUNTIME_RECORDER_FLIGHT_FILE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "runtime/base/traffic.h"
#include "runtime/recorder/flight_recorder.h"

namespace railhead::recorder {

struct Flight {
  std::string job;
  int rank = 0;
  int world_size = 1;
  std::string pod;
  std::string node;
  std::string transport;
  absl::Time time;     // of writing, by MonotonicNow, as times of operations
  absl::Time of_day;   // the same time for people
  std::string error;   // why the job failed
  std::string report;  // the last report of positions; "": there was none
  std::vector<std::string> rails;
  std::vector<Flow> flows;
  std::vector<Operation> operations;
};

std::string ToJson(const Flight& flight);

// Returns "<group>-rank-<rank>.json", without characters unsuitable for file names.
std::string FileName(absl::string_view group, int rank);

// Writes the file atomically.
absl::Status WriteFile(const std::string& path, absl::string_view text);

}  // namespace railhead::recorder

#endif  // RAILHEAD_RUNTIME_RECORDER_FLIGHT_FILE_H_
