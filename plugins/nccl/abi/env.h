// SPDX-License-Identifier: Apache-2.0
//
// NCCL's environment plugin interface, versions 1 and 2: own declarations of the tables that NCCL
// looks up by name (`ncclEnvPlugin_v2`), written from the published layouts. Their sizes and
// offsets are asserted in layout_test.cc.
//
// NCCL calls init before it reads its first variable, also for ncclGetUniqueId. From then on it
// reads each variable with get_env instead of getenv, on any thread, and finalize runs at exit.
#ifndef RAILHEAD_PLUGINS_NCCL_ABI_ENV_H_
#define RAILHEAD_PLUGINS_NCCL_ABI_ENV_H_

#include <cstdint>

#include "plugins/nccl/abi/net.h"

namespace railhead::nccl::abi {

struct EnvV1 {
  const char* name;
  // The version of NCCL, such as 2, 28, 9 and "".
  Result (*init)(uint8_t major, uint8_t minor, uint8_t patch, const char* suffix);
  Result (*finalize)();
  // Null: not set. The text must be valid until finalize, or the next call with this name.
  const char* (*get_env)(const char* name);
};

struct EnvV2 {
  const char* name;
  Result (*init)(uint8_t major, uint8_t minor, uint8_t patch, const char* suffix, LogFunction log);
  Result (*finalize)();
  const char* (*get_env)(const char* name);
};

}  // namespace railhead::nccl::abi

#endif  // RAILHEAD_PLUGINS_NCCL_ABI_ENV_H_
