// SPDX-License-Identifier: Apache-2.0
//
// Streams of the C API.
#ifndef RAILHEAD_RUNTIME_COMM_API_STREAM_H_
#define RAILHEAD_RUNTIME_COMM_API_STREAM_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "railhead/railhead.h"
#include "runtime/base/thread.h"

namespace railhead::comm {

// Queue of calls, run one after the other by the stream's own thread. Thread-safe.
class Stream {
 public:
  Stream() : thread_(StartThread([this] { RunAll(); })) {}
  // Blocks until all calls are done.
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // Runs a call; or, if the status is an error, ends the call without running it.
  using Run = std::function<rhResult_t(const absl::Status& cannot)>;
  // `owner`: key for Drop. Calls of the same `group`, if not null, start together when the first of
  // them starts.
  void Add(const void* owner, Run call, std::shared_ptr<const void> group = nullptr);
  // Delays the start of calls while it exists, so that all calls of a group are queued before the
  // first one starts.
  class Hold {
   public:
    explicit Hold(std::shared_ptr<Stream> stream) : stream_(std::move(stream)) {
      stream_->ChangeHolds(1);
    }
    ~Hold() {
      if (stream_ != nullptr) stream_->ChangeHolds(-1);
    }
    Hold(Hold&&) = default;
    Hold& operator=(Hold&&) = delete;

   private:
    std::shared_ptr<Stream> stream_;
  };

  // Replaces the owner's queued calls: each completes in its turn with this result, without
  // running. Returns their number.
  int Drop(const void* owner, rhResult_t result);

  // Returns the number of calls added so far; as a `moment`, it stands for all of them.
  uint64_t Now() const;
  bool IsDone(uint64_t moment) const;
  // Blocks until these calls are done. Each call has its own timeout.
  void Wait(uint64_t moment);
  // Returns the first failure among the calls (since, moment] that are done; rhSuccess if there is
  // none.
  rhResult_t Result(uint64_t since, uint64_t moment) const;
  // Number of the last call whose failure was reported; do not report these again.
  uint64_t told() const;
  void Told(uint64_t moment);

 private:
  struct Call {
    const void* owner;
    Run run;
    std::shared_ptr<const void> group;
  };
  // A call for which there is no thread, and its result.
  struct Failing {
    Run run;
    absl::Status cannot;
    std::shared_ptr<std::promise<rhResult_t>> result;
  };

  void RunAll();
  void ChangeHolds(int by);
  // Starts the other calls of that group, each on its own thread; in their turns, the stream waits
  // for them. Returns those that the caller must end at once, without the lock: other ranks wait
  // for them. The caller holds the lock.
  std::vector<Failing> BeginTogether(const std::shared_ptr<const void>& group);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Call> calls_;
  uint64_t added_ = 0;
  uint64_t done_ = 0;
  int holds_ = 0;
  bool ending_ = false;
  uint64_t told_ = 0;
  std::vector<std::pair<uint64_t, rhResult_t>> failures_;  // by number of the call
  std::thread thread_;
};

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_API_STREAM_H_
