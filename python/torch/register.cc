// SPDX-License-Identifier: Apache-2.0
//
// The way from Python to the backend: an operator of torch that returns a process group with the
// backend in it. So this shared object knows no Python, and one serves all versions of it.
#include <railhead/railhead.h>
#include <torch/library.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "backend.h"
#include "transfer_watch.h"

namespace railhead_torch {
namespace {

constexpr int64_t kLongestSeconds = 86400;  // of RAILHEAD_TIMEOUT_SECONDS

c10::intrusive_ptr<c10d::ProcessGroup> Create(int64_t rank, int64_t size, const at::Tensor& id,
                                              int64_t timeout_milliseconds,
                                              const std::string& name) {
  TORCH_CHECK_VALUE(id.nbytes() == sizeof(rhUniqueId) && id.is_contiguous(),
                    "railhead: not a unique id");
  rhUniqueId unique_id;
  std::memcpy(&unique_id, id.data_ptr(), sizeof unique_id);
  rhConfig_t config = RH_CONFIG_INITIALIZER;
  const int64_t seconds =
      std::clamp<int64_t>((timeout_milliseconds + 999) / 1000, 1, kLongestSeconds);
  config.timeoutSeconds = static_cast<int>(seconds);
  config.startTimeoutSeconds = static_cast<int>(seconds);
  config.commName = name.c_str();
  rhComm_t comm = nullptr;
  if (rhCommInitRankConfig(&comm, static_cast<int>(size), unique_id, static_cast<int>(rank),
                           &config) != rhSuccess) {
    C10_THROW_ERROR(DistBackendError, c10::str("railhead: ", rhGetLastError(nullptr)));
  }
  auto group =
      c10::make_intrusive<c10d::ProcessGroup>(static_cast<int>(rank), static_cast<int>(size));
  // From here Python takes it, for any device.
  group->setBackend(
      c10::DeviceType::CPU, c10d::ProcessGroup::BackendType::CUSTOM,
      c10::make_intrusive<RailheadBackend>(comm, static_cast<int>(rank), static_cast<int>(size),
                                           std::chrono::milliseconds(timeout_milliseconds)));
  return group;
}

void Stop() { TransferWatch::Get().Stop(); }

}  // namespace
}  // namespace railhead_torch

TORCH_LIBRARY(railhead_c10d, library) {
  library.def("create", &railhead_torch::Create);
  library.def("stop", &railhead_torch::Stop);  // before Python ends
}
