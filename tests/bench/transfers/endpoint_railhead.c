/* SPDX-License-Identifier: Apache-2.0
 *
 * rhIsend and rhIrecv of Railhead's C API. Each call waits for its request and frees it. */
#include <stdio.h>
#include <stdlib.h>

#include "endpoint.h"
#include "railhead/railhead.h"

enum { kTag = 0 };

static rhComm_t comm;
static char name[128];
static int rank;
static int ranks;

static void Check(rhResult_t result) {
  if (result == rhSuccess) return;
  fprintf(stderr, "%s: %s\n", rhGetErrorString(result), rhGetLastError(comm));
  exit(1);
}

void EndpointOpen(int* argc, char*** argv) {
  (void)argc;
  (void)argv;
  int version = 0;
  rhCommInfo_t info;
  info.struct_size = sizeof info;
  Check(rhCommInitFromEnv(&comm));
  Check(rhCommUserRank(comm, &rank));
  Check(rhCommCount(comm, &ranks));
  Check(rhCommGetInfo(comm, &info));
  Check(rhGetVersion(&version));
  snprintf(name, sizeof name, "Railhead %d.%d.%d over %s", version / 10000, version / 100 % 100,
           version % 100, info.transport);
}

void EndpointClose(void) { Check(rhCommDestroy(comm)); }

const char* EndpointName(void) { return name; }
int EndpointRank(void) { return rank; }
int EndpointRanks(void) { return ranks; }

static void Finish(rhRequest_t request) {
  Check(rhRequestWait(request));
  Check(rhRequestFree(request));
}

void EndpointSend(const void* data, size_t bytes) {
  rhRequest_t request;
  Check(rhIsend(data, bytes, rhUint8, 1 - rank, kTag, comm, &request));
  Finish(request);
}

void EndpointReceive(void* data, size_t bytes) {
  rhRequest_t request;
  Check(rhIrecv(data, bytes, rhUint8, 1 - rank, kTag, comm, &request));
  Finish(request);
}
