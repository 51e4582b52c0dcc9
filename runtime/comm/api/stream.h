// SPDX-License-Identifier: Apache-2.0
//
// Streams of the C API.
#ifndef RAILHEAD_RUNTIME_COMM_API_STREAM_H_
#define RAILHEAD_RUNTIME_COMM_API_STREAM_H_

#include <sys/types.h>
#include <unistd.h>

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
#include "runtime/comm/api/first_failures.h"

namespace railhead::comm {

// Queue of calls, run one after the other by the stream's own thread. Thread-safe.
class Stream {
 public:
  Stream();
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

  // The calls that were added until now, since those whose result was reported last.
  class Calls {
   public:
    explicit Calls(std::shared_ptr<Stream> stream);
    ~Calls();
    Calls(const Calls&) = delete;
    Calls& operator=(const Calls&) = delete;

    bool AreDone() const;
    // Blocks until they are done. Each call has its own timeout.
    void Wait() const;
    // Returns the first failure among those that are done; rhSuccess if there is none.
    rhResult_t Result() const;
    // Later Calls begin after these.
    void Reported();

   private:
    const std::shared_ptr<Stream> stream_;
    uint64_t since_ = 0;  // number of the last call before them
    uint64_t last_ = 0;
    const pid_t process_ = ::getpid();  // a forked child has the object, not the stream's thread
  };

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
  uint64_t told_ = 0;       // the last call whose result was reported
  FirstFailures failures_;  // since the moments of all Calls, and since told_
  std::thread thread_;
};

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_API_STREAM_H_
