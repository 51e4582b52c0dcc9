// SPDX-License-Identifier: Apache-2.0
//
// A network plugin that takes memory of emulated GPUs, which is memory of the host: otherwise, all
// calls are those of the plugin whose path is in WRAPPED_NET_PLUGIN. Only with such a network does
// NCCL send by way of another process (PXN).
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

#include "plugins/nccl/abi/net.h"

namespace {

using namespace railhead::nccl::abi;  // NOLINT: all below is of NCCL's interface

// The wrapped plugin's table of this type.
template <class Table>
const Table* wrapped = nullptr;

template <class Table>
void Wrap(void* library, const char* name, Table& table) {
  const auto* const found = static_cast<const Table*>(dlsym(library, name));
  if (found == nullptr) return;
  wrapped<Table> = found;
  table = *found;
  table.get_properties = [](int device, auto* properties) {
    const Result result = wrapped<Table>->get_properties(device, properties);
    properties->memory |= kGpuMemory;
    return result;
  };
  table.register_memory = [](void* comm, void* data, size_t size, int /*kind*/, void** memory) {
    return wrapped<Table>->register_memory(comm, data, size, kHostMemory, memory);
  };
}

}  // namespace

#define RAILHEAD_EXPORT extern "C" __attribute__((visibility("default")))

RAILHEAD_EXPORT NetV10 ncclNetPlugin_v10;
NetV10 ncclNetPlugin_v10 = {};
RAILHEAD_EXPORT NetV11Table ncclNetPlugin_v11;
NetV11Table ncclNetPlugin_v11 = {};
RAILHEAD_EXPORT NetV12Table ncclNetPlugin_v12;
NetV12Table ncclNetPlugin_v12 = {};

// Before NCCL looks for the tables.
__attribute__((constructor)) static void WrapAll() {
  const char* const path = std::getenv("WRAPPED_NET_PLUGIN");
  void* const library = path == nullptr ? nullptr : dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    std::fprintf(stderr, "WRAPPED_NET_PLUGIN: %s\n", path == nullptr ? "not set" : dlerror());
    std::abort();
  }
  Wrap(library, "ncclNetPlugin_v10", ncclNetPlugin_v10);
  Wrap(library, "ncclNetPlugin_v11", ncclNetPlugin_v11);
  Wrap(library, "ncclNetPlugin_v12", ncclNetPlugin_v12);
}
