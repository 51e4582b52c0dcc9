// SPDX-License-Identifier: Apache-2.0
//
// Additional work that a wait (rails/mesh.h) performs and waits for, so that one thread waits for
// both. Implemented for messages in shared memory.
#ifndef RAILHEAD_RUNTIME_BASE_COMPANION_H_
#define RAILHEAD_RUNTIME_BASE_COMPANION_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace railhead {

// Use from one thread at a time.
class Companion {
 public:
  virtual ~Companion() = default;

  // Returns true if there is anything to wait for.
  virtual bool Waits() const = 0;
  // Performs available work without waiting. Returns true if there was any. An error is final.
  virtual absl::StatusOr<bool> Poll() = 0;
  // Readable when Poll has work, after Arm, which may open it; -1 before. Poll once more between
  // Arm and a sleep. After an error of Arm, nothing becomes readable.
  virtual int event_fd() const = 0;
  virtual absl::Status Arm() = 0;
  // Call when it was readable.
  virtual void Answer() = 0;

  // Increases with all work done.
  virtual uint64_t progress() const = 0;
  // Describes what is outstanding, for the message of a timeout.
  virtual std::string DescribeProgress() const = 0;
};

}  // namespace railhead

#endif  // RAILHEAD_RUNTIME_BASE_COMPANION_H_
