// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_RUNTIME_COMM_STREAM_H_
#define RAILHEAD_RUNTIME_COMM_STREAM_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "railhead/railhead.h"
#include "runtime/base/thread.h"

namespace railhead::comm {

// Calls that a thread of its own does one after the other. Thread-safe.
class Stream {
 public:
  Stream() : thread_(StartThread([this] { Run(); })) {}
  // Ends when all calls are done.
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // `owner` names those that Drop takes together.
  void Add(const void* owner, std::function<rhResult_t()> call);
  // Ends what the owner still waits to have done, without doing it: each counts as done in its
  // turn, with this result. Returns how many there were.
  int Drop(const void* owner, rhResult_t result);

  // Names a moment: all calls that were added before.
  uint64_t Now() const;
  bool IsDone(uint64_t moment) const;
  // Returns once they are done; what each call waits for has its own deadline.
  void Wait(uint64_t moment);
  // The first failure of those that are done; rhSuccess if there was none.
  rhResult_t Result(uint64_t moment) const;

 private:
  struct Call {
    const void* owner;
    std::function<rhResult_t()> run;
  };

  void Run();

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Call> calls_;
  uint64_t added_ = 0;
  uint64_t done_ = 0;
  bool ending_ = false;
  uint64_t failed_call_ = 0;  // its number, if `failure_` is one
  rhResult_t failure_ = rhSuccess;
  std::thread thread_;
};

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_STREAM_H_
