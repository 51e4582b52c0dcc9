// SPDX-License-Identifier: Apache-2.0
//
// Linked into a railhead-perf of the tests, these take the place of the library's functions, and do
// what a defect could: --check must find it.
#include <dlfcn.h>

#include <cstddef>
#include <cstring>
#include <vector>

#include "railhead/railhead.h"

// NOLINTBEGIN(readability-identifier-naming): these names are the C API.

namespace {

template <class Function>
Function* Real(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

int RankOf(rhComm_t comm) {
  int rank = -1;
  rhCommUserRank(comm, &rank);
  return rank;
}

}  // namespace

// Omits the values of rank 1. (The program adds up times and findings as doubles.)
rhResult_t rhAllReduce(const void* sendbuf, void* recvbuf, size_t count, rhDataType_t datatype,
                       rhRedOp_t op, rhComm_t comm, rhStream_t stream) {
  const std::vector<double> nothing(count);
  const bool faulty = datatype != rhFloat64 && RankOf(comm) == 1;
  return Real<decltype(rhAllReduce)>("rhAllReduce")(faulty ? nothing.data() : sendbuf, recvbuf,
                                                    count, datatype, op, comm, stream);
}

// Nothing happens, and what was there stays.
rhResult_t rhReduceScatter(const void* /*sendbuf*/, void* /*recvbuf*/, size_t /*recvcount*/,
                           rhDataType_t /*datatype*/, rhRedOp_t /*op*/, rhComm_t /*comm*/,
                           rhStream_t /*stream*/) {
  return rhSuccess;
}

// Rank 1 gets all values one byte further on.
rhResult_t rhBroadcast(const void* sendbuf, void* recvbuf, size_t count, rhDataType_t datatype,
                       int root, rhComm_t comm, rhStream_t stream) {
  const rhResult_t result = Real<decltype(rhBroadcast)>("rhBroadcast")(
      sendbuf, recvbuf, count, datatype, root, comm, stream);
  if (RankOf(comm) == 1 && count > 1) {
    auto* const bytes = static_cast<std::byte*>(recvbuf);
    std::memmove(bytes + 1, bytes, count - 1);
  }
  return result;
}

// NOLINTEND(readability-identifier-naming)
