// SPDX-License-Identifier: Apache-2.0
#include "tests/nccl/stock/rank/nccl.h"

#include <dlfcn.h>

#include "tests/nccl/stock/cuda/api.h"
#include "tests/nccl/stock/redirect.h"

namespace railhead::stock {

Nccl OpenNccl(const std::string& path) {
  void* const library = LoadNccl(path);
  Nccl nccl = {};
  const auto find = [library](auto& function, const char* name) {
    void* const found = dlsym(library, name);
    if (found == nullptr) GiveUp("the library has no function %s", name);
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(found);
  };
  find(nccl.GetUniqueId, "ncclGetUniqueId");
  find(nccl.CommInitRank, "ncclCommInitRank");
  // Since NCCL 2.14.
  nccl.CommFinalize = reinterpret_cast<int (*)(CommHandle)>(dlsym(library, "ncclCommFinalize"));
  find(nccl.CommDestroy, "ncclCommDestroy");
  find(nccl.CommAbort, "ncclCommAbort");
  find(nccl.CommGetAsyncError, "ncclCommGetAsyncError");
  find(nccl.GetLastError, "ncclGetLastError");
  find(nccl.GroupStart, "ncclGroupStart");
  find(nccl.GroupEnd, "ncclGroupEnd");
  find(nccl.AllReduce, "ncclAllReduce");
  find(nccl.AllGather, "ncclAllGather");
  find(nccl.ReduceScatter, "ncclReduceScatter");
  find(nccl.Broadcast, "ncclBroadcast");
  find(nccl.Reduce, "ncclReduce");
  find(nccl.Send, "ncclSend");
  find(nccl.Recv, "ncclRecv");
  return nccl;
}

}  // namespace railhead::stock
