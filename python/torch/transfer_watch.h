// SPDX-License-Identifier: Apache-2.0
//
// Keeps the unfinished transfers of all process groups of the process. One thread, which begins
// with the first transfer and lives as long as the process, completes those that no caller waits
// for, and ends groups whose transfers are late. It polls while there are transfers, and sleeps
// otherwise.
//
// Thread-safe. After fork() the child has a new watch.
#ifndef RAILHEAD_PYTHON_TORCH_TRANSFER_WATCH_H_
#define RAILHEAD_PYTHON_TORCH_TRANSFER_WATCH_H_

#include <sys/types.h>
#include <unistd.h>

#include <mutex>
#include <unordered_map>

#include "condition.h"
#include "per_process.h"
#include "transfer_work.h"

namespace railhead_torch {

class TransferWatch {
 public:
  using WorkPtr = c10::intrusive_ptr<TransferWork>;

  const pid_t process = ::getpid();

  static TransferWatch& Get() { return OfThisProcess<TransferWatch>(); }
  void Add(WorkPtr work);
  // Returns the work for the caller to complete, or null if another thread has taken it.
  WorkPtr Take(const TransferWork* work);
  // The group of this executor was destroyed: its transfers get a few more seconds.
  void Leave(const Executor* executor);
  // Python is about to end: completes nothing from now on, as callbacks and tensors need Python.
  void Stop();

 private:
  void Loop();

  std::mutex mutex_;  // guards what follows
  Condition changed_;
  std::unordered_map<const TransferWork*, WorkPtr> works_;
  bool asleep_ = false;
  bool completing_ = false;
  bool stopped_ = false;
  bool started_ = false;
};

}  // namespace railhead_torch

#endif  // RAILHEAD_PYTHON_TORCH_TRANSFER_WATCH_H_
