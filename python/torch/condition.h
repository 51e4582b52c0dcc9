// SPDX-License-Identifier: Apache-2.0
//
// A condition on the monotonic clock, and threads that take no signals of the program. In place of
// std::condition_variable, whose wait() is another symbol since GCC 12: the shared object has to
// load beside older C++ libraries.
#ifndef RAILHEAD_PYTHON_TORCH_CONDITION_H_
#define RAILHEAD_PYTHON_TORCH_CONDITION_H_

#include <pthread.h>
#include <signal.h>
#include <time.h>

#include <chrono>
#include <mutex>
#include <thread>
#include <utility>

namespace railhead_torch {

class Condition {
 public:
  Condition() {
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&condition_, &monotonic);
    pthread_condattr_destroy(&monotonic);
  }
  ~Condition() { pthread_cond_destroy(&condition_); }
  Condition(const Condition&) = delete;
  Condition& operator=(const Condition&) = delete;

  void NotifyAll() { pthread_cond_broadcast(&condition_); }
  void Wait(std::unique_lock<std::mutex>& lock) {
    pthread_cond_wait(&condition_, lock.mutex()->native_handle());
  }
  // False when the time is over.
  bool WaitUntil(std::unique_lock<std::mutex>& lock, std::chrono::steady_clock::time_point until) {
    const auto since_boot = until.time_since_epoch();
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(since_boot);
    timespec time;
    time.tv_sec = static_cast<time_t>(seconds.count());
    time.tv_nsec = static_cast<long>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(since_boot - seconds).count());
    return pthread_cond_timedwait(&condition_, lock.mutex()->native_handle(), &time) == 0;
  }

 private:
  pthread_cond_t condition_;
};

template <class Body>
std::thread StartThread(Body body) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread(std::move(body));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace railhead_torch

#endif  // RAILHEAD_PYTHON_TORCH_CONDITION_H_
