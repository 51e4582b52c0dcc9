/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "library.h"
#include "railhead/railhead.h"

static rhComm_t comm;
static char name[128];
static int rank;
static int ranks;
static int windows; /* BENCH_WINDOWS is set: buffers are memory that ranks can reach */

static void Check(rhResult_t result) {
  if (result == rhSuccess) return;
  fprintf(stderr, "%s: %s\n", rhGetErrorString(result), rhGetLastError(comm));
  exit(1);
}

void LibraryOpen(int* argc, char*** argv) {
  (void)argc;
  (void)argv;
  int version = 0;
  rhCommInfo_t info;
  info.struct_size = sizeof info;
  windows = getenv("BENCH_WINDOWS") != NULL;
  Check(rhCommInitFromEnv(&comm));
  Check(rhCommUserRank(comm, &rank));
  Check(rhCommCount(comm, &ranks));
  Check(rhCommGetInfo(comm, &info));
  Check(rhGetVersion(&version));
  snprintf(name, sizeof name, "Railhead %d.%d.%d over %s%s", version / 10000, version / 100 % 100,
           version % 100, info.transport, windows ? ", buffers in windows" : "");
}

void LibraryClose(void) { Check(rhCommDestroy(comm)); }

const char* LibraryName(void) { return name; }
int LibraryRank(void) { return rank; }
int LibraryRanks(void) { return ranks; }

void* LibraryMemory(size_t bytes) {
  void* memory = NULL;
  rhWindow_t window;
  if (!windows) return aligned_alloc(4096, bytes);
  Check(rhMemAlloc(&memory, bytes));
  Check(rhCommWindowRegister(comm, memory, bytes, &window, 0));
  return memory;
}

void LibraryRun(enum Collective collective, const void* send, void* receive, size_t count,
                enum Type type) {
  static const rhDataType_t kTypes[] = {rhFloat32, rhFloat16, rhBfloat16};
  const rhDataType_t t = kTypes[type];
  switch (collective) {
    case kAllReduce:
      Check(rhAllReduce(send, receive, count, t, rhSum, comm, NULL));
      break;
    case kReduce:
      Check(rhReduce(send, receive, count, t, rhSum, kRoot, comm, NULL));
      break;
    case kBroadcast:
      Check(rhBroadcast(send, rank == kRoot ? (void*)send : receive, count, t, kRoot, comm, NULL));
      break;
    case kAllGather:
      Check(rhAllGather(send, receive, count, t, comm, NULL));
      break;
    case kReduceScatter:
      Check(rhReduceScatter(send, receive, count, t, rhSum, comm, NULL));
      break;
    case kAllToAll:
      Check(rhAlltoAll(send, receive, count, t, comm, NULL));
      break;
    case kGather:
      Check(rhGather(send, receive, count, t, kRoot, comm, NULL));
      break;
    case kScatter:
      Check(rhScatter(send, receive, count, t, kRoot, comm, NULL));
      break;
    case kSendReceive:
      Check(rhGroupStart());
      Check(rhSend(send, count, t, (rank + 1) % ranks, comm, NULL));
      Check(rhRecv(receive, count, t, (rank + ranks - 1) % ranks, comm, NULL));
      Check(rhGroupEnd());
      break;
    case kBarrier:
      Check(rhBarrier(comm, NULL));
      break;
  }
}
