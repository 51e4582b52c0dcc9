// SPDX-License-Identifier: Apache-2.0
//
// Streams of the C API, and requests of streams and of transfers.
#include <memory>

#include "absl/strings/str_cat.h"
#include "railhead/railhead.h"
#include "runtime/comm/api/handle.h"
#include "runtime/comm/api/stream.h"

// NOLINTBEGIN(readability-identifier-naming): these names are the C API.

using railhead::comm::CopyInfo;
using railhead::comm::Guard;
using railhead::comm::HasSize;
using railhead::comm::LaneTransfer;
using railhead::comm::NullArgument;
using railhead::comm::Report;
using railhead::comm::Stream;

namespace {

// Texts of failed calls are stored with their communicators.
rhResult_t WaitFor(const Stream::Calls& calls) {
  calls.Wait();
  return calls.Result();
}

// Reports the use of a transfer that the parent process started.
rhResult_t Foreign(const char* call) {
  return Report(nullptr, rhInvalidUsage,
                absl::StrCat(call,
                             ": the transfer belongs to the process that forked this one; only "
                             "that process may wait for it"));
}

}  // namespace

rhResult_t rhStreamCreate(rhStream_t* stream) {
  return Guard(nullptr, [&] {
    if (stream == nullptr) return NullArgument(nullptr, "rhStreamCreate", "stream");
    *stream = new rhStream{std::make_shared<Stream>()};
    return rhSuccess;
  });
}

rhResult_t rhStreamSynchronize(rhStream_t stream) {
  return Guard(nullptr, [&] {
    if (stream == nullptr) return rhSuccess;
    Stream::Calls calls(stream->stream);
    const rhResult_t result = WaitFor(calls);
    calls.Reported();
    return result;
  });
}

rhResult_t rhStreamDestroy(rhStream_t stream) {
  const rhResult_t result = rhStreamSynchronize(stream);
  delete stream;
  return result;
}

rhResult_t rhStreamRequest(rhStream_t stream, rhRequest_t* request) {
  return Guard(nullptr, [&] {
    if (request == nullptr) return NullArgument(nullptr, "rhStreamRequest", "request");
    *request = nullptr;
    if (stream == nullptr) return NullArgument(nullptr, "rhStreamRequest", "stream");
    auto made = std::make_unique<rhRequest>();
    made->calls = std::make_unique<Stream::Calls>(stream->stream);
    *request = made.release();
    return rhSuccess;
  });
}

rhResult_t rhRequestTest(rhRequest_t request, int* done) {
  return Guard(nullptr, [&] {
    if (request == nullptr) return NullArgument(nullptr, "rhRequestTest", "request");
    if (done == nullptr) return NullArgument(nullptr, "rhRequestTest", "done");
    if (request->calls != nullptr) {
      *done = request->calls->AreDone() ? 1 : 0;
      return *done != 0 ? request->calls->Result() : rhSuccess;
    }
    LaneTransfer& transfer = request->transfer;
    if (transfer.IsForeign()) return Foreign("rhRequestTest");
    *done = transfer.Test() ? 1 : 0;
    return *done != 0 ? Report(nullptr, transfer.status()) : rhSuccess;
  });
}

rhResult_t rhRequestWait(rhRequest_t request) {
  return Guard(nullptr, [&] {
    if (request == nullptr) return NullArgument(nullptr, "rhRequestWait", "request");
    if (request->calls != nullptr) return WaitFor(*request->calls);
    LaneTransfer& transfer = request->transfer;
    if (transfer.IsForeign()) return Foreign("rhRequestWait");
    transfer.Wait();
    return transfer.status().ok() ? rhSuccess : Report(nullptr, transfer.status());
  });
}

rhResult_t rhRequestGetInfo(rhRequest_t request, rhRequestInfo_t* info) {
  return Guard(nullptr, [&] {
    if (request == nullptr) return NullArgument(nullptr, "rhRequestGetInfo", "request");
    if (info == nullptr) return NullArgument(nullptr, "rhRequestGetInfo", "info");
    if (!HasSize(info)) {
      return Report(nullptr, rhInvalidArgument,
                    "rhRequestGetInfo: info->struct_size is not sizeof(rhRequestInfo_t)");
    }
    const bool is_transfer = request->calls == nullptr;
    const LaneTransfer& transfer = request->transfer;
    if (!is_transfer || !transfer.IsDone() || !transfer.status().ok()) {
      return Report(nullptr, rhInvalidUsage,
                    !is_transfer ? "rhRequestGetInfo: the request is not one of rhIsend or rhIrecv"
                                 : "rhRequestGetInfo: the transfer is not done, or has failed");
    }
    rhRequestInfo_t all{};
    all.peer = transfer.outcome.peer;
    all.tag = transfer.outcome.tag;
    all.bytes = transfer.outcome.bytes;
    CopyInfo(all, info);
    return rhSuccess;
  });
}

rhResult_t rhRequestFree(rhRequest_t request) {
  if (request == nullptr) return rhSuccess;
  if (request->calls == nullptr && !request->transfer.IsDone() && !request->transfer.IsForeign()) {
    return Report(nullptr, rhInvalidUsage,
                  "rhRequestFree: the transfer is not done, and its buffer is in use; wait for it, "
                  "or use rhCommAbort to end it");
  }
  delete request;
  return rhSuccess;
}

// NOLINTEND(readability-identifier-naming)
