// SPDX-License-Identifier: Apache-2.0
//
// Threads of the library. Signals belong to the program: a library thread must not receive one that
// the program's threads block or wait for with sigwait. So every thread is started here, or while
// SignalsBlocked lives.
#ifndef RAILHEAD_RUNTIME_BASE_THREAD_H_
#define RAILHEAD_RUNTIME_BASE_THREAD_H_

#include <signal.h>

#include <system_error>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace railhead {

// Blocks signals on this thread, and on threads started during its lifetime. Signals of a thread's
// own faults stay enabled, for the program's handlers.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t blocked;
    sigfillset(&blocked);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS}) {
      sigdelset(&blocked, fault);
    }
    pthread_sigmask(SIG_BLOCK, &blocked, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

// Starts a thread that receives no signals. `Thread` is std::thread or std::jthread. Throws if the
// system has no thread left: use it only where the C API's guard catches (comm/handle.h).
template <class Thread = std::thread, class Body>
Thread StartThread(Body&& body) {
  const SignalsBlocked blocked;
  return Thread(std::forward<Body>(body));
}

// Does the same but returns ResourceExhausted instead of throwing.
template <class Thread = std::thread, class Body>
absl::StatusOr<Thread> TryStartThread(Body&& body) {
  try {
    return StartThread<Thread>(std::forward<Body>(body));
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "cannot start a thread: ", error.code().message(),
        "; raise the pod's limit of processes (pids) or RLIMIT_NPROC, or its memory limit"));
  }
}

}  // namespace railhead

#endif  // RAILHEAD_RUNTIME_BASE_THREAD_H_
