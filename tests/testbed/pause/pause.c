// SPDX-License-Identifier: Apache-2.0
//
// The container that holds a pod's namespaces open: process 1 of the pod. It waits for the signal
// to stop, and reaps the children that others leave behind.
#include <signal.h>
#include <stddef.h>
#include <sys/wait.h>

int main(void) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGCHLD);
  sigprocmask(SIG_BLOCK, &signals, NULL);
  for (int signal = SIGCHLD; signal == SIGCHLD; sigwait(&signals, &signal)) {
    while (waitpid(-1, NULL, WNOHANG) > 0) {
    }
  }
  return 0;
}
