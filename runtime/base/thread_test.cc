// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/thread.h"

#include <gtest/gtest.h>

namespace railhead {
namespace {

sigset_t Mask() {
  sigset_t mask;
  pthread_sigmask(SIG_BLOCK, nullptr, &mask);
  return mask;
}

TEST(ThreadTest, TakesNoSignalOfTheProgramButItsOwnFaults) {
  sigset_t mask;
  StartThread([&mask] { mask = Mask(); }).join();
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGCHLD, SIGUSR1, SIGALRM, SIGPIPE, SIGPROF}) {
    EXPECT_EQ(sigismember(&mask, signal), 1) << signal;
  }
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT}) {
    EXPECT_EQ(sigismember(&mask, fault), 0) << fault;
  }
}

TEST(ThreadTest, WhoStartsOneKeepsItsOwnSignals) {
  const sigset_t before = Mask();
  StartThread<std::jthread>([] {});
  const sigset_t after = Mask();
  for (int signal = 1; signal < 32; ++signal) {
    EXPECT_EQ(sigismember(&after, signal), sigismember(&before, signal)) << signal;
  }
}

}  // namespace
}  // namespace railhead
