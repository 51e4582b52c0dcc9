/* SPDX-License-Identifier: Apache-2.0
 * One rank of a verified all-reduce. Linked with the library, or with -DLOAD a program that loads it:
 *   linked       load /usr/lib/librailhead.so.0
 * Exit code 0 if every value was right. Loaded, it also checks that loading starts and opens nothing,
 * that no thread is left when the last communicator is gone, and that it may be closed and loaded again
 * while a thread lives that has used it, and while the library still waits for another rank. */
#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "railhead/railhead.h"

#define CHECK(condition)                                                  \
  do {                                                                    \
    if (!(condition)) {                                                   \
      fprintf(stderr, "line %d: not so: %s\n", __LINE__, #condition);     \
      exit(1);                                                            \
    }                                                                     \
  } while (0)

enum { kCount = 100003, kDeadlineSeconds = 20 };

static struct {
  __typeof__(&rhCommInitFromEnv) init;
  __typeof__(&rhCommCount) count;
  __typeof__(&rhCommUserRank) rank;
  __typeof__(&rhCommGetInfo) info;
  __typeof__(&rhAllReduce) all_reduce;
  __typeof__(&rhCommDestroy) destroy;
  __typeof__(&rhGetLastError) last_error;
} rh;

static void must(rhResult_t result, rhComm_t comm) {
  if (result == rhSuccess) return;
  fprintf(stderr, "%s\n", rh.last_error(comm));
  exit(1);
}

/* Rank 1 leaves later than the others: they have let go of it by then, and wait in the background. */
static void all_reduce(time_t late_seconds) {
  rhComm_t comm = NULL;
  must(rh.init(&comm), NULL);
  int count = 0;
  int rank = -1;
  must(rh.count(comm, &count), comm);
  must(rh.rank(comm, &rank), comm);
  rhCommInfo_t info = {0};
  info.struct_size = sizeof info;
  must(rh.info(comm, &info), comm);
  CHECK(strcmp(info.transport, getenv("RAILHEAD_TRANSPORT")) == 0);
  float* values = malloc(kCount * sizeof *values);
  CHECK(values != NULL);
  for (int i = 0; i < kCount; ++i) values[i] = (float)(i % 1000 + rank);
  must(rh.all_reduce(values, values, kCount, rhFloat32, rhSum, comm, NULL), comm);
  for (int i = 0; i < kCount; ++i) {
    CHECK(values[i] == (float)(count * (i % 1000) + count * (count - 1) / 2));
  }
  free(values);
  if (rank == 1) nanosleep(&(struct timespec){late_seconds, 0}, NULL);
  must(rh.destroy(comm), comm);
}

#ifdef LOAD
static int entries(const char* folder) {
  DIR* dir = opendir(folder);
  CHECK(dir != NULL);
  int number = 0;
  while (readdir(dir) != NULL) ++number;
  closedir(dir);
  return number - 2;
}

static int threads(void) { return entries("/proc/self/task"); }

static void nap(void) { nanosleep(&(struct timespec){0, 10000000}, NULL); }

static void wait_for_threads(int number) {
  for (int i = 0; i < kDeadlineSeconds * 100 && threads() != number; ++i) nap();
  CHECK(threads() == number);
}

static void* load(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    exit(1);
  }
  CHECK((rh.init = dlsym(library, "rhCommInitFromEnv")) != NULL);
  CHECK((rh.count = dlsym(library, "rhCommCount")) != NULL);
  CHECK((rh.rank = dlsym(library, "rhCommUserRank")) != NULL);
  CHECK((rh.info = dlsym(library, "rhCommGetInfo")) != NULL);
  CHECK((rh.all_reduce = dlsym(library, "rhAllReduce")) != NULL);
  CHECK((rh.destroy = dlsym(library, "rhCommDestroy")) != NULL);
  CHECK((rh.last_error = dlsym(library, "rhGetLastError")) != NULL);
  return library;
}

static int at_first; /* threads; an emulated CPU has one of its own */
static int used[2];
static int closed[2];

/* Uses the library, and ends when it was closed. */
static void* outlives(void* unused) {
  char byte = 0;
  all_reduce(0);
  wait_for_threads(at_first + 1);
  CHECK(write(used[1], &byte, 1) == 1);
  CHECK(read(closed[0], &byte, 1) == 1);
  return unused;
}

/* Uses the library, and ends before it is closed. */
static void* ends(void* late_seconds) {
  all_reduce(*(time_t*)late_seconds);
  return NULL;
}

int main(int argc, char** argv) {
  CHECK(argc == 2);
  const int descriptors = entries("/proc/self/fd");
  at_first = threads();
  void* library = load(argv[1]);
  CHECK(threads() == at_first);
  CHECK(entries("/proc/self/fd") == descriptors);

  pthread_t thread;
  char byte = 0;
  CHECK(pipe(used) == 0 && pipe(closed) == 0);
  CHECK(pthread_create(&thread, NULL, outlives, NULL) == 0);
  CHECK(read(used[0], &byte, 1) == 1);
  CHECK(dlclose(library) == 0);
  CHECK(write(closed[1], &byte, 1) == 1);
  CHECK(pthread_join(thread, NULL) == 0);

  for (time_t late_seconds = 0; late_seconds < 2; ++late_seconds) {
    library = load(argv[1]);
    CHECK(pthread_create(&thread, NULL, ends, &late_seconds) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(dlclose(library) == 0);
    wait_for_threads(at_first);
  }
  return 0;
}
#else
int main(void) {
  rh.init = rhCommInitFromEnv;
  rh.count = rhCommCount;
  rh.rank = rhCommUserRank;
  rh.info = rhCommGetInfo;
  rh.all_reduce = rhAllReduce;
  rh.destroy = rhCommDestroy;
  rh.last_error = rhGetLastError;
  all_reduce(0);
  return 0;
}
#endif
