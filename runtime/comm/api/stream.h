// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_RUNTIME_COMM_API_STREAM_H_
#define RAILHEAD_RUNTIME_COMM_API_STREAM_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

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

  // `owner` names those that Drop takes together. Those of the same `group`, if they have one, are
  // begun together, when the first of them is.
  void Add(const void* owner, std::function<rhResult_t()> call,
           std::shared_ptr<const void> group = nullptr);
  // While one lives, no call is begun: so that those of a group are all there when the first is.
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

  // Ends what the owner still waits to have done, without doing it: each counts as done in its
  // turn, with this result. Returns how many there were.
  int Drop(const void* owner, rhResult_t result);

  // Names a moment: all calls that were added before.
  uint64_t Now() const;
  bool IsDone(uint64_t moment) const;
  // Returns once they are done; what each call waits for has its own deadline.
  void Wait(uint64_t moment);
  // The first failure of those after `since` that are done; rhSuccess if there was none.
  rhResult_t Result(uint64_t since, uint64_t moment) const;
  // Up to where failures have been told, and need not be told again.
  uint64_t told() const;
  void Told(uint64_t moment);

 private:
  struct Call {
    const void* owner;
    std::function<rhResult_t()> run;
    std::shared_ptr<const void> group;
  };

  void Run();
  void ChangeHolds(int by);
  // With the lock: begins the others of that group, each in a thread of its own. Their turns wait
  // for these.
  void BeginTogether(const std::shared_ptr<const void>& group);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Call> calls_;
  uint64_t added_ = 0;
  uint64_t done_ = 0;
  int holds_ = 0;
  bool ending_ = false;
  uint64_t told_ = 0;
  std::vector<std::pair<uint64_t, rhResult_t>> failures_;  // by the numbers of calls
  std::thread thread_;
};

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_API_STREAM_H_
