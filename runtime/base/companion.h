// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_RUNTIME_BASE_COMPANION_H_
#define RAILHEAD_RUNTIME_BASE_COMPANION_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace railhead {

// Work that a wait for something else (rails/mesh.h) does and waits for as well, so that one thread
// waits for both. Used by one thread at a time.
class Companion {
 public:
  virtual ~Companion() = default;

  // Whether there is anything to wait for.
  virtual bool Waits() const = 0;
  // Does what can be done without waiting. Returns whether that was anything. An error is final.
  virtual absl::StatusOr<bool> Poll() = 0;
  // Readable, once armed, when Poll has something to do. The last Poll before a sleep comes after
  // arming.
  virtual int event_fd() const = 0;
  virtual void Arm() = 0;
  // It was readable.
  virtual void Answer() = 0;

  // Grows with everything that is done.
  virtual uint64_t progress() const = 0;
  // What is waited for, for the message of a wait that has taken too long.
  virtual std::string DescribeProgress() const = 0;
};

}  // namespace railhead

#endif  // RAILHEAD_RUNTIME_BASE_COMPANION_H_
