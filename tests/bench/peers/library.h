/* SPDX-License-Identifier: Apache-2.0
 *
 * What the loop (loop.c) needs of a library. One file for each library implements it; any failure
 * in it ends the process. */
#ifndef RAILHEAD_TESTS_BENCH_PEERS_LIBRARY_H_
#define RAILHEAD_TESTS_BENCH_PEERS_LIBRARY_H_

#include <stddef.h>

enum Type { kFp32, kFp16, kBf16 };

enum Collective {
  kAllReduce,
  kReduce,
  kBroadcast,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kGather,
  kScatter,
  kSendReceive, /* around the ring of ranks: to the next one, from the one before */
  kBarrier
};

/* The root of every collective that has one. */
enum { kRoot = 0 };

void LibraryOpen(int* argc, char*** argv);
void LibraryClose(void);

/* With its version; one line. */
const char* LibraryName(void);
int LibraryRank(void);
int LibraryRanks(void);

/* Memory for buffers, as the library likes it best; LibraryClose frees it. */
void* LibraryMemory(size_t bytes);

/* Out of place, and with sums. `count` is the number of values in a block: what one rank gives
 * another, or the whole buffer if nothing is divided. A broadcast's root has its values in `send`
 * alone. */
void LibraryRun(enum Collective collective, const void* send, void* receive, size_t count,
                enum Type type);

#endif /* RAILHEAD_TESTS_BENCH_PEERS_LIBRARY_H_ */
