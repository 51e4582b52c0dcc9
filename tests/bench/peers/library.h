/* SPDX-License-Identifier: Apache-2.0
 *
 * What the loop (loop.c) needs of a library. One file for each library implements it; any failure
 * in it ends the process. */
#ifndef RAILHEAD_TESTS_BENCH_PEERS_LIBRARY_H_
#define RAILHEAD_TESTS_BENCH_PEERS_LIBRARY_H_

#include <stddef.h>

enum Type { kFp32, kFp16, kBf16 };

void LibraryOpen(int* argc, char*** argv);
void LibraryClose(void);

/* With its version; one line. */
const char* LibraryName(void);
int LibraryRank(void);
int LibraryRanks(void);

/* Memory for buffers, as the library likes it best; LibraryClose frees it. */
void* LibraryMemory(size_t bytes);

/* receive = the sum of all ranks' send, out of place. */
void LibraryAllReduce(const void* send, void* receive, size_t count, enum Type type);

#endif /* RAILHEAD_TESTS_BENCH_PEERS_LIBRARY_H_ */
