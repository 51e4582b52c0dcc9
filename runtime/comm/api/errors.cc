// SPDX-License-Identifier: Apache-2.0
//
// Errors of the C API: conversion of a Status into a result code, and storage of its text for
// rhGetLastError.
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/printable_text.h"
#include "railhead/railhead.h"
#include "runtime/comm/api/handle.h"

// NOLINTBEGIN(readability-identifier-naming): these names are the C API.

namespace railhead::comm {
namespace {

// Text of a failed call without a communicator; one per thread, like errno.
std::string& ThreadError() {
  thread_local std::string text;
  return text;
}

}  // namespace

rhResult_t ResultOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return rhSuccess;
    case absl::StatusCode::kInvalidArgument:
      return rhInvalidArgument;
    case absl::StatusCode::kInternal:
      return rhInternalError;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kCancelled:
      return rhRemoteError;
    default:
      return rhSystemError;
  }
}

void Tell(rhComm_t comm, absl::string_view text) {
  comm->last_error = PrintableText(text);
  comm->told = &comm->last_error;
}

rhResult_t Report(rhComm_t comm, rhResult_t result, absl::string_view text) {
  if (comm == nullptr) {
    ThreadError() = PrintableText(text);
  } else {
    const std::lock_guard<std::mutex> lock(comm->state);
    Tell(comm, text);
  }
  return result;
}

rhResult_t Report(rhComm_t comm, const absl::Status& status) {
  if (status.ok()) return rhSuccess;
  return Report(comm, ResultOf(status), status.message());
}

rhResult_t WrongArgument(rhComm_t comm, const char* call, const absl::Status& wrong) {
  return Report(comm, rhInvalidArgument, absl::StrCat(call, ": ", wrong.message()));
}

rhResult_t NullArgument(rhComm_t comm, const char* call, const char* argument) {
  return Report(comm, rhInvalidArgument, absl::StrCat(call, ": ", argument, " is NULL"));
}

rhResult_t CannotAsk(const char* call, rhComm_t comm) {
  if (comm == nullptr) return NullArgument(nullptr, call, "comm");
  switch (comm->phase.load(std::memory_order_acquire)) {
    case rhComm::Phase::kStarting:
      return Report(
          comm, rhInvalidUsage,
          absl::StrCat(call,
                       ": the communicator is not ready: poll rhCommGetAsyncError until it "
                       "no longer returns rhInProgress, or call rhCommAbort"));
    case rhComm::Phase::kNotStarted:
      return Report(comm, rhInvalidUsage,
                    absl::StrCat(call, ": the communicator could not be created: ", comm->verdict));
    case rhComm::Phase::kReady:
    case rhComm::Phase::kMaking:
    case rhComm::Phase::kEnding:
    case rhComm::Phase::kEnded:
      return rhSuccess;
  }
  return rhSuccess;
}

rhResult_t CannotUse(const char* call, rhComm_t comm) {
  if (comm == nullptr) return NullArgument(nullptr, call, "comm");
  const rhComm::Phase phase = comm->phase.load(std::memory_order_acquire);
  if (phase == rhComm::Phase::kReady) return rhSuccess;
  if (phase == rhComm::Phase::kMaking) {
    return Report(comm, rhInvalidUsage,
                  absl::StrCat(call,
                               ": another communicator is being created from this one: poll "
                               "rhCommGetAsyncError until it no longer returns rhInProgress, or "
                               "call rhCommAbort"));
  }
  if (const rhResult_t cannot = CannotAsk(call, comm); cannot != rhSuccess) return cannot;
  return Report(comm, rhInvalidUsage,
                absl::StrCat(call, ": rhCommFinalize was called; destroy the communicator"));
}

}  // namespace railhead::comm

const char* rhGetErrorString(rhResult_t result) {
  switch (result) {
    case rhSuccess:
      return "no error";
    case rhSystemError:
      return "system error";
    case rhInternalError:
      return "internal error";
    case rhInvalidArgument:
      return "invalid argument";
    case rhInvalidUsage:
      return "invalid usage";
    case rhRemoteError:
      return "another rank failed or could not be reached";
    case rhInProgress:
      return "operation in progress";
  }
  return "unknown result code";
}

const char* rhGetLastError(rhComm_t comm) {
  if (comm == nullptr) return railhead::comm::ThreadError().c_str();
  const std::lock_guard<std::mutex> lock(comm->state);
  return comm->told->c_str();
}

// NOLINTEND(readability-identifier-naming)
