// SPDX-License-Identifier: Apache-2.0
//
// Handles of the C API, and the conversion of a Status into a result code and an error text. Shared
// by the files of api/.
#ifndef RAILHEAD_RUNTIME_COMM_API_HANDLE_H_
#define RAILHEAD_RUNTIME_COMM_API_HANDLE_H_

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "railhead/railhead.h"
#include "runtime/base/caught.h"
#include "runtime/comm/api/stream.h"
#include "runtime/comm/communicator/communicator.h"
#include "runtime/comm/communicator/lane.h"
#include "runtime/comm/setup/start_abort.h"
#include "runtime/reduce/reduce.h"

// NOLINTBEGIN(readability-identifier-naming): these names are the C API.

struct rhStream {
  std::shared_ptr<railhead::comm::Stream> stream;
};

// Result of rhCommRegister, as a void*.
struct rhRegistration {
  railhead::comm::DirectMemory::Registration rails;
};

struct rhWindow {
  size_t number;  // within its communicator
  rhRegistration registration;
};

// A request: calls of a stream, or one transfer.
struct rhRequest {
  std::unique_ptr<railhead::comm::Stream::Calls> calls;  // null: the transfer
  railhead::comm::LaneTransfer transfer;
};

struct rhComm {
  // An operator that the program has created.
  struct Operator {
    rhDataType_t type;
    railhead::reduce::Scalar factor;
  };

  // State of the communicator.
  enum class Phase : uint8_t {
    kStarting,    // starting in the background; there is no communicator yet
    kNotStarted,  // the start failed; there is no communicator
    kReady,
    kMaking,  // another one is created from it in the background; kReady afterwards
    kEnding,  // rhCommFinalize is running
    kEnded    // only queries, rhCommDestroy and rhCommAbort are allowed
  };
  static bool InProgress(Phase phase) {
    return phase == Phase::kStarting || phase == Phase::kMaking || phase == Phase::kEnding;
  }

  std::unique_ptr<railhead::comm::Communicator> communicator;  // from kReady on
  std::atomic<Phase> phase = Phase::kReady;
  bool blocking = true;  // calls that start, end or split it return when they are done
  // Aborts a start in the background; null for other starts.
  std::shared_ptr<railhead::comm::StartAbort> start_abort;
  std::thread background;          // runs its last operation in the background
  rhResult_t came_to = rhSuccess;  // result of the last start or end
  bool abandoned = false;          // aborted while it starts: the thread that creates it deletes it

  std::mutex in_use;  // held while a call runs

  std::mutex state;  // guards the members below
  // Notified when a call ends on a stream, and when `phase` leaves a phase in progress.
  std::condition_variable left_stream;
  std::weak_ptr<railhead::comm::Stream> stream;  // stream of the queued calls
  std::atomic<int> on_stream = 0;  // number of queued calls; atomic, because every call reads it
  std::string last_error;
  // Abort status of the job, once it was requested. Separate from last_error, because the text of a
  // failed call must stay valid if another thread requests this one.
  std::string verdict;
  const std::string* told = &last_error;  // result of rhGetLastError
  std::vector<std::optional<Operator>> operators;
  std::vector<std::unique_ptr<rhWindow>> windows;  // open windows
  std::vector<std::unique_ptr<rhRegistration>> registrations;
};

// NOLINTEND(readability-identifier-naming)

namespace railhead::comm {

// Returns the options that environment and program set, without the group. Returns InvalidArgument
// for an error in `fields`. An error in the environment goes into the options, so that all ranks
// report it.
absl::StatusOr<CommunicatorOptions> ReadOptions(const config::Fields& fields = {});

rhResult_t ResultOf(const absl::Status& status);

// Set the text of rhGetLastError, made printable: it may quote other ranks. Tell: the caller holds
// `comm->state`.
void Tell(rhComm_t comm, absl::string_view text);
rhResult_t Report(rhComm_t comm, rhResult_t result, absl::string_view text);
rhResult_t Report(rhComm_t comm, const absl::Status& status);
// Reports an error in the arguments of `call`.
rhResult_t WrongArgument(rhComm_t comm, const char* call, const absl::Status& wrong);
rhResult_t NullArgument(rhComm_t comm, const char* call, const char* argument);

// Return rhSuccess if a call may query (CannotAsk) or use (CannotUse) the communicator; otherwise
// report and return the error.
rhResult_t CannotAsk(const char* call, rhComm_t comm);
rhResult_t CannotUse(const char* call, rhComm_t comm);

// Returns true if the size of the caller's struct is plausible. Its header may be older or newer
// than the library; the size determines which fields it has. Detects most structs that were not
// initialized.
template <class Info>
bool HasSize(const Info* to) {
  constexpr size_t kLargest = sizeof(Info) + 4096;
  return to->struct_size > sizeof to->struct_size && to->struct_size <= kLargest;
}

template <class Info>
void CopyInfo(Info from, Info* to) {
  const size_t size = to->struct_size;
  from.struct_size = size;
  std::memcpy(to, &from, std::min(size, sizeof from));
  // Fields that this library does not know.
  auto* const bytes = reinterpret_cast<std::byte*>(to);
  if (size > sizeof from) std::memset(bytes + sizeof from, 0, size - sizeof from);
}

// Runs the body of a call; turns exceptions (out of memory, no thread) into a result.
template <class Body>
rhResult_t Guard(rhComm_t comm, Body body) noexcept {
  return Caught(body, [comm](const absl::Status& why) { return Report(comm, why); });
}

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_API_HANDLE_H_
