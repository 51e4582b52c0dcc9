// SPDX-License-Identifier: Apache-2.0
//
// What the files of the C API share: the handles, and how a Status becomes a result and a text.
#ifndef RAILHEAD_RUNTIME_COMM_API_HANDLE_H_
#define RAILHEAD_RUNTIME_COMM_API_HANDLE_H_

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "railhead/railhead.h"
#include "runtime/comm/api/stream.h"
#include "runtime/comm/communicator/communicator.h"
#include "runtime/comm/communicator/lane.h"
#include "runtime/comm/setup/start_abort.h"
#include "runtime/reduce/reduce.h"

// NOLINTBEGIN(readability-identifier-naming): these names are the C API.

struct rhStream {
  std::shared_ptr<railhead::comm::Stream> stream;
};

// What rhCommRegister gives, as a void*.
struct rhRegistration {
  railhead::comm::Communicator::Registration rails;
};

struct rhWindow {
  size_t number;  // in its communicator
  rhRegistration registration;
};

// Of a stream's calls, or of a transfer.
struct rhRequest {
  std::shared_ptr<railhead::comm::Stream> stream;
  uint64_t since = 0;  // calls up to that one are not its own
  uint64_t moment = 0;
  std::shared_ptr<railhead::comm::LaneTransfer> transfer = nullptr;
};

struct rhComm {
  // An operator that its user has made.
  struct Operator {
    rhDataType_t type;
    railhead::reduce::Scalar factor;
  };

  // What it is good for.
  enum class Phase : uint8_t {
    kStarting,    // in the background: there is no communicator yet
    kNotStarted,  // there is none, and will be none
    kReady,
    kMaking,  // another one is made of it in the background; then it is ready again
    kEnding,  // rhCommFinalize is at work
    kEnded    // can only be asked, and freed
  };
  static bool InProgress(Phase phase) {
    return phase == Phase::kStarting || phase == Phase::kMaking || phase == Phase::kEnding;
  }

  std::unique_ptr<railhead::comm::Communicator> communicator;  // from kReady on
  std::atomic<Phase> phase = Phase::kReady;
  bool blocking = true;  // whether its start and end, and those that are made of it, are awaited
  // Of a start that is not awaited.
  std::shared_ptr<railhead::comm::StartAbort> start_abort;
  std::thread background;          // of the last thing that is not, if it is this one's
  rhResult_t came_to = rhSuccess;  // what the start or end came to that is over
  bool abandoned = false;          // aborted in progress: who makes it frees it

  std::mutex in_use;  // held while a call runs

  std::mutex state;                              // guards what follows
  std::condition_variable left_stream;           // and has left a phase of progress
  std::weak_ptr<railhead::comm::Stream> stream;  // where calls are
  std::atomic<int> on_stream = 0;  // how many; every call asks, and takes no lock to see a 0
  std::string last_error;
  // Of the job, once that is asked for. It has a place of its own: the text of a failed call stays
  // where it is when another thread asks for this one.
  std::string verdict;
  const std::string* told = &last_error;  // what rhGetLastError returns
  std::vector<std::optional<Operator>> operators;
  std::vector<std::unique_ptr<rhWindow>> windows;  // those that are open
  std::vector<std::unique_ptr<rhRegistration>> registrations;
};

// NOLINTEND(readability-identifier-naming)

namespace railhead::comm {

// The part of the options that the environment and the program say, whoever names the group.
// InvalidArgument for what is wrong in the fields; what is wrong in the environment goes into the
// options, for all ranks to hear.
absl::StatusOr<CommunicatorOptions> ReadOptions(const config::Fields& fields = {});

rhResult_t ResultOf(const absl::Status& status);

// Leaves the text where rhGetLastError finds it. The first: `comm->state` is held.
void Tell(rhComm_t comm, std::string text);
rhResult_t Report(rhComm_t comm, rhResult_t result, std::string text);
rhResult_t Report(rhComm_t comm, const absl::Status& status);
rhResult_t NullArgument(rhComm_t comm, const char* call, const char* argument);

// Why a call can ask nothing of the communicator, or do nothing with it; rhSuccess if it can.
rhResult_t CannotAsk(const char* call, rhComm_t comm);
rhResult_t CannotUse(const char* call, rhComm_t comm);

// A struct of the caller, whose header may be an older or a newer one: its size says how much it
// has. One that nobody has set is refused where it can be.
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
  // What this library does not know.
  auto* const bytes = reinterpret_cast<std::byte*>(to);
  if (size > sizeof from) std::memset(bytes + sizeof from, 0, size - sizeof from);
}

// Runs the body of a call; what it throws (no memory, no thread) becomes a result.
template <class Body>
rhResult_t Guard(rhComm_t comm, Body body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return Report(comm, rhSystemError, "out of memory");
  } catch (const std::exception& exception) {
    return Report(comm, rhSystemError, exception.what());
  }
}

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_API_HANDLE_H_
