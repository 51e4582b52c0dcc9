/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions that pingpong.c needs from a library. One file for each library implements them; a
 * failure in one of them ends the process. There are two ranks, and each has one thread. */
#ifndef RAILHEAD_TESTS_BENCH_TRANSFERS_ENDPOINT_H_
#define RAILHEAD_TESTS_BENCH_TRANSFERS_ENDPOINT_H_

#include <stddef.h>

void EndpointOpen(int* argc, char*** argv);
void EndpointClose(void);

/* Returns the library's name and version, in one line. */
const char* EndpointName(void);

int EndpointRank(void);
int EndpointRanks(void);

/* Sends `bytes` bytes to the other rank. The buffer may be used again when it returns. */
void EndpointSend(const void* data, size_t bytes);

/* Receives a message of `bytes` bytes from the other rank. */
void EndpointReceive(void* data, size_t bytes);

#endif /* RAILHEAD_TESTS_BENCH_TRANSFERS_ENDPOINT_H_ */
