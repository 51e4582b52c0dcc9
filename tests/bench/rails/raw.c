/* SPDX-License-Identifier: Apache-2.0
 *
 * Plain TCP streams, one on each rail and both ways at once: what the rails carry at best.
 *
 * usage: raw listen ADDRESS...             waits for the other side, and goes with it
 *        raw dial SECONDS ADDRESS...       prints the bytes that arrived here in a second
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { kMostRails = 64, kPort = 7000, kBlock = 256 << 10 };

static char block[kBlock];

static double Now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void Fail(const char* what) {
  perror(what);
  exit(1);
}

static int Open(const char* text, int dial) {
  struct sockaddr_in address;
  memset(&address, 0, sizeof address);
  address.sin_family = AF_INET;
  address.sin_port = htons(kPort);
  if (inet_pton(AF_INET, text, &address.sin_addr) != 1) exit(2);
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  const int one = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (dial) {
    if (connect(fd, (struct sockaddr*)&address, sizeof address) != 0) Fail("connect");
  } else if (bind(fd, (struct sockaddr*)&address, sizeof address) != 0 || listen(fd, 1) != 0) {
    Fail("listen");
  }
  return fd;
}

int main(int argc, char** argv) {
  const int dial = argc > 3 && strcmp(argv[1], "dial") == 0;
  const int first = dial ? 3 : 2;
  const int rails = argc - first;
  if (rails < 1 || rails > kMostRails) return 2;
  double seconds = dial ? atof(argv[2]) : 0;
  struct pollfd entries[kMostRails];
  for (int i = 0; i < rails; ++i) entries[i].fd = Open(argv[first + i], dial);
  if (dial) {
    if (write(entries[0].fd, &seconds, sizeof seconds) != sizeof seconds) Fail("write");
  } else {
    printf("listening\n");
    fflush(stdout);
    for (int i = 0; i < rails; ++i) {
      if ((entries[i].fd = accept(entries[i].fd, NULL, NULL)) < 0) Fail("accept");
    }
    if (read(entries[0].fd, &seconds, sizeof seconds) != sizeof seconds) Fail("read");
  }
  for (int i = 0; i < rails; ++i) {
    fcntl(entries[i].fd, F_SETFL, O_NONBLOCK);
    entries[i].events = POLLIN | POLLOUT;
  }
  /* The first half second fills the pipes and does not count. */
  const double begin = Now() + 0.5;
  const double end = begin + seconds;
  double received = 0;
  double now;
  while ((now = Now()) < end) {
    poll(entries, (nfds_t)rails, 10);
    for (int i = 0; i < rails; ++i) {
      if (entries[i].revents & POLLOUT) send(entries[i].fd, block, kBlock, MSG_NOSIGNAL);
      if (entries[i].revents & POLLIN) {
        const ssize_t got = recv(entries[i].fd, block, kBlock, 0);
        if (got > 0 && now >= begin) received += (double)got;
      }
    }
  }
  printf("%.0f\n", received / seconds);
  return 0;
}
