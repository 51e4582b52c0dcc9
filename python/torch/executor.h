// SPDX-License-Identifier: Apache-2.0
//
// Runs the calls of one communicator, one after the other: in the caller's thread if it waits for
// the result anyway and nothing is queued before it, else in the executor's thread, which starts
// with the first call that needs it.
//
// torch's deadlines: librailhead itself ends calls that all ranks have begun and in which nothing
// moves. It waits without limit for a rank that lives and does not call, so a watchdog ends the
// group if a call exceeds its timeout. Ending means rhCommRevoke: all ranks' calls fail, and the
// communicator is freed after its last use.
#ifndef RAILHEAD_PYTHON_TORCH_EXECUTOR_H_
#define RAILHEAD_PYTHON_TORCH_EXECUTOR_H_

#include <c10/core/Device.h>
#include <c10/core/Event.h>
#include <railhead/railhead.h>

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "condition.h"
#include "work.h"

namespace railhead_torch {

// After torch's timeout. The library's own text, at the same time, says more.
inline constexpr auto kGrace = std::chrono::milliseconds(1000);

// Environment of a step: the communicator, and the operators made for it, which are freed when the
// step's group is done.
class Running {
 public:
  explicit Running(rhComm_t comm) : comm_(comm) {}
  ~Running() {
    for (const rhRedOp_t op : made_) rhRedOpDestroy(op, comm_);
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  rhComm_t comm() const { return comm_; }
  rhResult_t MakeFactor(void* factor, rhDataType_t type, rhRedOp_t* op) {
    const rhResult_t result =
        rhRedOpCreatePreMulSum(op, factor, type, rhScalarHostImmediate, comm_);
    if (result == rhSuccess) made_.push_back(*op);
    return result;
  }

 private:
  const rhComm_t comm_;
  std::vector<rhRedOp_t> made_;
};

// One collective or transfer.
struct Step {
  std::function<rhResult_t(Running&)> run;  // may only be noted by it, in a group
  std::function<void()> finish;             // after success; may be empty
};

struct Job {
  c10::intrusive_ptr<RailWork> work;
  c10::Device device = c10::kCPU;  // of its tensors
  // Recorded on the caller's streams at each call: the calls see the results of earlier work.
  std::vector<c10::Event> queued;
  c10d::OpType type = c10d::OpType::UNKNOWN;
  uint64_t number = 0;      // of the calls of its group
  std::vector<Step> steps;  // several: a group
  std::vector<at::Tensor> results;
  std::chrono::milliseconds timeout = std::chrono::milliseconds(0);

  // For messages.
  std::string What() const {
    return c10d::opTypeToString(type) + " (call " + std::to_string(number) + " of the group)";
  }
};

class Executor : public std::enable_shared_from_this<Executor> {
 public:
  static std::shared_ptr<Executor> Create(rhComm_t comm);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // Begins the job. `waited_for`: the caller will wait for it, so it may be done before this
  // returns.
  void Submit(Job job, bool waited_for);
  // Waits until all jobs are done, and ends the thread. Further jobs fail.
  void Drain();
  // As Drain, but does not wait for a running job, which may need Python's lock while the caller
  // holds it.
  void Leave();
  // Ends the calls of all ranks. The reason is in the errors of this rank's. Any thread.
  void End(const std::string& reason);
  // For transfers, which use the communicator beside all jobs (transfer_work.h). Any thread.
  rhComm_t comm() const { return comm_; }
  std::string WhyUnusable();  // "" if calls can be made
  std::string WhyEndedOr(const char* library_text);
  // Called by the watchdog.
  void EndIfLate(std::chrono::steady_clock::time_point now);

 private:
  explicit Executor(rhComm_t comm);
  void Loop();
  // With the lock, which they release while the job runs.
  void DoAlone(Job job, std::unique_lock<std::mutex>& lock);
  void DoFirst(std::unique_lock<std::mutex>& lock);  // of jobs_; inside another job
  void Do(Job job);
  rhResult_t RunSteps(Job& job, Running& running);
  static void FinishSteps(const Job& job);
  // Returns why calls can no longer be made; "" if they can.
  std::string WhyEnded();

  const rhComm_t comm_;
  const int process_;

  std::mutex mutex_;  // guards what follows
  Condition changed_;
  std::deque<Job> jobs_;
  bool busy_ = false;
  std::thread::id runner_;  // the thread that does a job, if busy_
  bool leaving_ = false;
  std::string ended_;
  std::thread thread_;
  // Deadline of the running job; max without one.
  std::chrono::steady_clock::time_point deadline_ = std::chrono::steady_clock::time_point::max();
};

}  // namespace railhead_torch

#endif  // RAILHEAD_PYTHON_TORCH_EXECUTOR_H_
