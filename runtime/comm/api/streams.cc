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
rhResult_t Foreign(const char* call, const LaneTransfer& transfer) {
  if (!transfer.IsForeign()) return rhSuccess;
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
    *request = new rhRequest{std::make_unique<Stream::Calls>(stream->stream), std::nullopt};
    return rhSuccess;
  });
}

rhResult_t rhRequestTest(rhRequest_t request, int* done) {
  return Guard(nullptr, [&] {
    if (request == nullptr) return NullArgument(nullptr, "rhRequestTest", "request");
    if (done == nullptr) return NullArgument(nullptr, "rhRequestTest", "done");
    if (request->transfer.has_value()) {
      if (const rhResult_t foreign = Foreign("rhRequestTest", *request->transfer);
          foreign != rhSuccess) {
        return foreign;
      }
      *done = request->transfer->Test() ? 1 : 0;
      return *done != 0 ? Report(nullptr, request->transfer->status()) : rhSuccess;
    }
    *done = request->calls->AreDone() ? 1 : 0;
    return *done != 0 ? request->calls->Result() : rhSuccess;
  });
}

rhResult_t rhRequestWait(rhRequest_t request) {
  return Guard(nullptr, [&] {
    if (request == nullptr) return NullArgument(nullptr, "rhRequestWait", "request");
    if (request->transfer.has_value()) {
      LaneTransfer& transfer = *request->transfer;
      if (const rhResult_t foreign = Foreign("rhRequestWait", transfer); foreign != rhSuccess) {
        return foreign;
      }
      transfer.Wait();
      return Report(nullptr, transfer.status());
    }
    return WaitFor(*request->calls);
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
    const std::optional<LaneTransfer>& transfer = request->transfer;
    if (!transfer.has_value() || !transfer->IsDone() || !transfer->status().ok()) {
      return Report(nullptr, rhInvalidUsage,
                    !transfer.has_value()
                        ? "rhRequestGetInfo: the request is not one of rhIsend or rhIrecv"
                        : "rhRequestGetInfo: the transfer is not done, or has failed");
    }
    rhRequestInfo_t all{};
    all.peer = transfer->outcome.peer;
    all.tag = transfer->outcome.tag;
    all.bytes = transfer->outcome.bytes;
    CopyInfo(all, info);
    return rhSuccess;
  });
}

rhResult_t rhRequestFree(rhRequest_t request) {
  if (request == nullptr) return rhSuccess;
  if (const std::optional<LaneTransfer>& transfer = request->transfer;
      transfer.has_value() && !transfer->IsForeign() && !transfer->IsDone()) {
    return Report(nullptr, rhInvalidUsage,
                  "rhRequestFree: the transfer is not done, and its buffer is in use; wait for it, "
                  "or use rhCommAbort to end it");
  }
  delete request;
  return rhSuccess;
}

// NOLINTEND(readability-identifier-naming)
