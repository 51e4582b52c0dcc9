// SPDX-License-Identifier: Apache-2.0
//
// A time of day of its own for one program (LD_PRELOAD): that of the machine plus the seconds in the file
// RAILHEAD_TIME_FILE, which a test changes while the program runs. Waits until a time of day end by it, as
// the kernel's do.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t* ahead;
static long (*real_syscall)(long, ...);
static int (*real_timedwait)(pthread_cond_t*, pthread_mutex_t*, const struct timespec*);
static int (*real_clockwait)(pthread_cond_t*, pthread_mutex_t*, clockid_t, const struct timespec*);

__attribute__((constructor)) static void begin(void) {
  real_syscall = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
  real_timedwait = (int (*)(pthread_cond_t*, pthread_mutex_t*, const struct timespec*))dlsym(
      RTLD_NEXT, "pthread_cond_timedwait");
  real_clockwait =
      (int (*)(pthread_cond_t*, pthread_mutex_t*, clockid_t, const struct timespec*))dlsym(
          RTLD_NEXT, "pthread_cond_clockwait");
  const char* path = getenv("RAILHEAD_TIME_FILE");
  int file = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) abort();
  void* memory = mmap(NULL, sizeof *ahead, PROT_READ, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) abort();
  ahead = memory;
}

static int64_t seconds_ahead(void) { return ahead == NULL ? 0 : *ahead; }

int clock_gettime(clockid_t clock, struct timespec* time) {
  // The raw call: this may run before the constructor.
  long result;
  __asm__ volatile("syscall" : "=a"(result) : "0"(SYS_clock_gettime), "D"(clock), "S"(time) : "rcx", "r11", "memory");
  if (result < 0) {
    errno = (int)-result;
    return -1;
  }
  if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) time->tv_sec += seconds_ahead();
  return 0;
}

int gettimeofday(struct timeval* time, void* zone) {
  (void)zone;
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  time->tv_sec = now.tv_sec;
  time->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t* into) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (into != NULL) *into = now.tv_sec;
  return now.tv_sec;
}

// The machine's time at which to look again: that of the deadline, or 50 ms from now, as the time of day
// may be set meanwhile. Returns whether it is the deadline's.
static int next_look(const struct timespec* deadline, struct timespec* look) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  int64_t left = (deadline->tv_sec - now.tv_sec) * 1000000000 + deadline->tv_nsec - now.tv_nsec;
  const int64_t most = 50000000;
  int last = left <= most;
  if (!last) left = most;
  if (left < 0) left = 0;
  now.tv_sec -= seconds_ahead();
  look->tv_sec = now.tv_sec + (now.tv_nsec + left) / 1000000000;
  look->tv_nsec = (now.tv_nsec + left) % 1000000000;
  return last;
}

int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex, const struct timespec* deadline) {
  struct timespec look;
  int last = next_look(deadline, &look);
  int result = real_timedwait(condition, mutex, &look);
  return result == ETIMEDOUT && !last ? 0 : result;
}

int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                           const struct timespec* deadline) {
  if (clock != CLOCK_REALTIME) return real_clockwait(condition, mutex, clock, deadline);
  struct timespec look;
  int last = next_look(deadline, &look);
  int result = real_clockwait(condition, mutex, clock, &look);
  return result == ETIMEDOUT && !last ? 0 : result;
}

// Abseil waits by futex.
long syscall(long number, ...) {
  long a[6];
  va_list list;
  va_start(list, number);
  for (int i = 0; i < 6; ++i) a[i] = va_arg(list, long);
  va_end(list);
  struct timespec look;
  int last = 1;
  if (number == SYS_futex && (a[1] & FUTEX_CLOCK_REALTIME) != 0 && a[3] != 0) {
    last = next_look((const struct timespec*)a[3], &look);
    a[3] = (long)&look;
  }
  long result = real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
  if (result < 0 && errno == ETIMEDOUT && !last) errno = EINTR;
  return result;
}
