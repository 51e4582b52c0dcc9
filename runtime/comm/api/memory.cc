// SPDX-License-Identifier: Apache-2.0
//
// Memory functions of the C API: allocation of memory that ranks can share, windows, and
// registration with the network.
#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "railhead/railhead.h"
#include "runtime/comm/api/calls.h"
#include "runtime/comm/api/handle.h"
#include "runtime/comm/communicator/communicator.h"
#include "runtime/shm/allocation.h"

// NOLINTBEGIN(readability-identifier-naming): these names are the C API.

using railhead::comm::CannotUse;
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
    if (const rhResult_t cannot = CannotUse("rhCommWindowRegister", comm); cannot != rhSuccess) {
      return cannot;
    }
    // Wrong arguments are refused below, on all ranks: the others wait for this one.
    absl::Status wrong;
    if (win_flags != 0) wrong = absl::InvalidArgumentError("win_flags must be 0");
    if (win == nullptr) {
      wrong = absl::InvalidArgumentError("win is NULL");
    } else {
      *win = nullptr;
    }
    auto window = std::make_unique<rhWindow>();
    return RunNow("rhCommWindowRegister", comm, [&](Communicator& communicator) {
      const absl::StatusOr<size_t> opened =
          communicator.memory().OpenWindow(static_cast<std::byte*>(buff), size, wrong);
      if (!opened.ok()) {
        return absl::Status(opened.status().code(),
                            absl::StrCat("rhCommWindowRegister: ", opened.status().message()));
      }
      window->number = *opened;
      // The pages stay allocated while any rank reads them, even if the user frees them earlier.
      const auto* const memory = static_cast<const std::byte*>(buff);
      absl::StatusOr<railhead::comm::DirectMemory::Registration> known =
          communicator.memory().Register({memory, size}, railhead::shm::SegmentOf(memory, size));
      if (!known.ok()) return communicator.GiveUp("rhCommWindowRegister", known.status());
      window->registration.rails = *std::move(known);
      *win = window.get();
      comm->windows.push_back(std::move(window));
      return absl::OkStatus();
    });
  });
}

rhResult_t rhCommWindowDeregister(rhComm_t comm, rhWindow_t win) {
  return Guard(comm, [&] {
    if (const rhResult_t cannot = CannotUse("rhCommWindowDeregister", comm); cannot != rhSuccess) {
      return cannot;
    }
    return RunNow("rhCommWindowDeregister", comm, [&](Communicator& communicator) -> absl::Status {
      const auto open = std::find_if(comm->windows.begin(), comm->windows.end(),
                                     [&](const auto& window) { return window.get() == win; });
      if (open == comm->windows.end()) {
        return absl::InvalidArgumentError(
            "rhCommWindowDeregister: win is not, or no longer, a window of this communicator");
      }
      communicator.memory().CloseWindow((*open)->number);
      comm->windows.erase(open);
      return absl::OkStatus();
    });
  });
}

rhResult_t rhCommRegister(rhComm_t comm, void* buff, size_t size, void** handle) {
  return Guard(comm, [&] {
    if (const rhResult_t cannot = CannotUse("rhCommRegister", comm); cannot != rhSuccess) {
      return cannot;
    }
    if (handle == nullptr) return NullArgument(comm, "rhCommRegister", "handle");
    *handle = nullptr;
    if (buff == nullptr) return NullArgument(comm, "rhCommRegister", "buff");
    if (size == 0) return Report(comm, rhInvalidArgument, "rhCommRegister: size is 0");
    const auto* const memory = static_cast<const std::byte*>(buff);
    auto registration = std::make_unique<rhRegistration>();
    absl::StatusOr<railhead::comm::DirectMemory::Registration> known =
        comm->communicator->memory().Register({memory, size},
                                              railhead::shm::SegmentOf(memory, size));
    if (!known.ok()) {
      return Report(comm, rhSystemError,
                    absl::StrCat("rhCommRegister: ", known.status().message()));
    }
    registration->rails = *std::move(known);
    const std::lock_guard<std::mutex> lock(comm->state);
    comm->registrations.push_back(std::move(registration));
    *handle = comm->registrations.back().get();
    return rhSuccess;
  });
}

rhResult_t rhCommDeregister(rhComm_t comm, void* handle) {
  return Guard(comm, [&] {
    if (const rhResult_t cannot = CannotUse("rhCommDeregister", comm); cannot != rhSuccess) {
      return cannot;
    }
    std::unique_ptr<rhRegistration> gone;  // destroyed after the lock, because that takes long
    {
      const std::lock_guard<std::mutex> lock(comm->state);
      auto& all = comm->registrations;
      const auto found = std::find_if(
          all.begin(), all.end(), [&](const auto& candidate) { return candidate.get() == handle; });
      if (found != all.end()) {
        gone = std::move(*found);
        all.erase(found);
      }
    }
    if (gone != nullptr) return rhSuccess;
    return Report(comm, rhInvalidArgument,
                  "rhCommDeregister: handle is not a registration of this communicator, or not any "
                  "more");
  });
}

// NOLINTEND(readability-identifier-naming)
