// SPDX-License-Identifier: Apache-2.0
//
// The way from Python to the backend: an operator of torch that returns a process group with the
// backend in it. So this shared object knows no Python, and one serves all versions of it.
#include <railhead/railhead.h>
#include <torch/library.h>

#include <chrono>
#include <cstring>
#include <string>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "join_group.h"
#include "transfer_watch.h"

namespace railhead_torch {
namespace {

// `group_milliseconds`: the timeout of rank 0.
c10::intrusive_ptr<c10d::ProcessGroup> Create(int64_t rank, int64_t size, const at::Tensor& id,
                                              int64_t group_milliseconds,
                                              int64_t timeout_milliseconds,
                                              const std::string& name) {
  TORCH_CHECK_VALUE(id.nbytes() == sizeof(rhUniqueId) && id.is_contiguous(),
                    "railhead: not a unique id");
  Invitation invitation = {{}, std::chrono::milliseconds(group_milliseconds)};
  std::memcpy(&invitation.id, id.data_ptr(), sizeof invitation.id);
  auto group =
      c10::make_intrusive<c10d::ProcessGroup>(static_cast<int>(rank), static_cast<int>(size));
  // From here Python takes it, for any device.
  group->setBackend(c10::DeviceType::CPU, c10d::ProcessGroup::BackendType::CUSTOM,
                    JoinGroup(invitation, static_cast<int>(rank), static_cast<int>(size),
                              std::chrono::milliseconds(timeout_milliseconds), name));
  return group;
}

void Stop() { TransferWatch::Get().Stop(); }

}  // namespace
}  // namespace railhead_torch

TORCH_LIBRARY(railhead_c10d, library) {
  library.def("create", &railhead_torch::Create);
  library.def("stop", &railhead_torch::Stop);  // before Python ends
}
