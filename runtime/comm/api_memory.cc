// SPDX-License-Identifier: Apache-2.0
//
// The C API's memory: that which ranks can give each other, and windows of it.
#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "railhead/railhead.h"
#include "runtime/comm/calls.h"
#include "runtime/comm/communicator.h"
#include "runtime/comm/handle.h"
#include "runtime/shm/allocation.h"

// NOLINTBEGIN(readability-identifier-naming): these names are the C API.

using railhead::comm::Communicator;
using railhead::comm::Guard;
using railhead::comm::NullArgument;
using railhead::comm::Report;
using railhead::comm::RunNow;

rhResult_t rhMemAlloc(void** ptr, size_t size) {
  return Guard(nullptr, [&] {
    if (ptr == nullptr) return NullArgument(nullptr, "rhMemAlloc", "ptr");
    *ptr = nullptr;
    if (size == 0) return Report(nullptr, rhInvalidArgument, "rhMemAlloc: size is 0");
    const absl::StatusOr<std::byte*> memory = railhead::shm::Allocate(size);
    if (!memory.ok()) {
      return Report(nullptr, rhSystemError,
                    absl::StrCat("rhMemAlloc: ", memory.status().message()));
    }
    *ptr = *memory;
    return rhSuccess;
  });
}

rhResult_t rhMemFree(void* ptr) {
  return Guard(nullptr, [&] {
    if (ptr == nullptr) return rhSuccess;
    const absl::Status freed = railhead::shm::Free(static_cast<std::byte*>(ptr));
    if (freed.ok()) return rhSuccess;
    return Report(nullptr, rhInvalidArgument, absl::StrCat("rhMemFree: ", freed.message()));
  });
}

rhResult_t rhCommWindowRegister(rhComm_t comm, void* buff, size_t size, rhWindow_t* win,
                                int win_flags) {
  return Guard(comm, [&] {
    if (comm == nullptr) return NullArgument(nullptr, "rhCommWindowRegister", "comm");
    if (win == nullptr) return NullArgument(comm, "rhCommWindowRegister", "win");
    *win = nullptr;
    if (win_flags != 0) {
      return Report(comm, rhInvalidArgument, "rhCommWindowRegister: win_flags must be 0");
    }
    auto window = std::make_unique<rhWindow>();
    return RunNow("rhCommWindowRegister", comm, [&](Communicator& communicator) {
      const absl::StatusOr<size_t> opened =
          communicator.OpenWindow(static_cast<std::byte*>(buff), size);
      if (!opened.ok()) {
        return absl::Status(opened.status().code(),
                            absl::StrCat("rhCommWindowRegister: ", opened.status().message()));
      }
      window->number = *opened;
      *win = window.get();
      comm->windows.push_back(std::move(window));
      return absl::OkStatus();
    });
  });
}

rhResult_t rhCommWindowDeregister(rhComm_t comm, rhWindow_t win) {
  return Guard(comm, [&] {
    if (comm == nullptr) return NullArgument(nullptr, "rhCommWindowDeregister", "comm");
    return RunNow("rhCommWindowDeregister", comm, [&](Communicator& communicator) -> absl::Status {
      const auto open = std::find_if(comm->windows.begin(), comm->windows.end(),
                                     [&](const auto& window) { return window.get() == win; });
      if (open == comm->windows.end()) {
        return absl::InvalidArgumentError(
            "rhCommWindowDeregister: win is not a window of this communicator, or not any more");
      }
      communicator.CloseWindow((*open)->number);
      comm->windows.erase(open);
      return absl::OkStatus();
    });
  });
}

// NOLINTEND(readability-identifier-naming)
