// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/thread.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

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

// An error for whoever wanted it, and not the end of the process.
TEST(ThreadTest, WhereThereIsNoneThatIsAnError) {
  const pid_t child = ::fork();
  if (child == 0) {
    // No room for another stack, and none is kept of this size.
    pthread_attr_t large;
    pthread_attr_init(&large);
    pthread_attr_setstacksize(&large, size_t{64} << 20);
    const rlimit none = {1 << 20, 1 << 20};
    if (pthread_setattr_default_np(&large) != 0 || ::setrlimit(RLIMIT_AS, &none) != 0) ::_exit(2);
    const bool refused = absl::IsResourceExhausted(TryStartThread([] {}).status());
    ::_exit(refused ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace railhead
