// SPDX-License-Identifier: Apache-2.0
//
// Threads of the library. The program's signals are the program's: a thread that it has not started
// must not take one that its own threads block, or wait for with sigwait. So every thread is
// started here, or while SignalsBlocked lives.
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

// Blocks signals in this thread while it lives; threads that are started meanwhile keep them
// blocked. Those by which the CPU reports a thread's own fault stay: a handler is to see them.
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

// Starts a thread that takes no signals. `Thread` is std::thread or std::jthread. Throws where the
// system has none: for callers under the guard of a call of the API (comm/handle.h).
template <class Thread = std::thread, class Body>
Thread StartThread(Body&& body) {
  const SignalsBlocked blocked;
  return Thread(std::forward<Body>(body));
}

// The same for everybody else: ResourceExhausted where the system has none.
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
