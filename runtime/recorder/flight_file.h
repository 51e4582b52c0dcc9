// SPDX-License-Identifier: Apache-2.0
//
// What the flight recorder leaves behind when a job fails: one file for each rank. Its fields are
// described in the runtime's README.
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
  absl::Time time;     // when it is written, of MonotonicNow, as times of operations are
  absl::Time of_day;   // the same moment for people
  std::string error;   // why the job has failed
  std::string report;  // the last word on who was where; "": there was none
  std::vector<std::string> rails;
  std::vector<Flow> flows;
  std::vector<Operation> operations;
};

std::string ToJson(const Flight& flight);

// "<group>-rank-<rank>.json", with nothing in it that a file's name should not have.
std::string FileName(absl::string_view group, int rank);

// Writes the file as a whole or not at all.
absl::Status WriteFile(const std::string& path, absl::string_view text);

}  // namespace railhead::recorder

#endif  // RAILHEAD_RUNTIME_RECORDER_FLIGHT_FILE_H_
