// SPDX-License-Identifier: Apache-2.0
#include "plugins/nccl/profiler/chain.h"

#include <dlfcn.h>

#include "absl/strings/str_cat.h"

namespace railhead::nccl {

bool Wants(uint64_t mask, uint64_t type) {
  constexpr uint64_t kTransfers = abi::kProxyOp | abi::kProxyStep | abi::kNetPlugin;
  constexpr uint64_t kParts = kTransfers | abi::kKernelChannel;
  constexpr uint64_t kCopies = abi::kCopyCollective | abi::kCopySync | abi::kCopyBatch;
  uint64_t wanted = type;
  switch (type) {
    case abi::kGroup:
      wanted |= abi::kCollective | abi::kP2p | kParts;
      break;
    case abi::kCollective:
    case abi::kP2p:
      wanted |= kParts;
      break;
    case abi::kProxyOp:
      wanted |= kTransfers;
      break;
    case abi::kProxyStep:
      wanted |= abi::kNetPlugin;
      break;
    case abi::kGroupApi:
      wanted |= abi::kGroup | abi::kCollective | abi::kP2p | abi::kCollectiveApi | abi::kP2pApi |
                abi::kKernelLaunch | kParts | kCopies;
      break;
    case abi::kCollectiveApi:
      wanted |= abi::kCollective | kParts | kCopies;
      break;
    case abi::kP2pApi:
      wanted |= abi::kP2p | kParts;
      break;
    case abi::kCopyCollective:
      wanted |= kCopies;
      break;
    default:
      break;
  }
  return (mask & wanted) != 0;
}

absl::StatusOr<const void*> FindTable(const std::string& file, const std::string& symbol) {
  void* const library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return absl::NotFoundError(
        absl::StrCat("RAILHEAD_NCCL_PROFILER=", file, " cannot be loaded: ", ::dlerror()));
  }
  const void* const table = ::dlsym(library, symbol.c_str());
  if (table != nullptr) return table;
  ::dlclose(library);
  return absl::NotFoundError(absl::StrCat(
      "RAILHEAD_NCCL_PROFILER=", file, " has no ", symbol,
      ", which this version of NCCL calls: use a version of it that has, or unset the variable"));
}

}  // namespace railhead::nccl
