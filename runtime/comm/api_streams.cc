// SPDX-License-Identifier: Apache-2.0
//
// The C API's streams and requests.
#include <memory>

#include "absl/strings/str_cat.h"
#include "railhead/railhead.h"
#include "runtime/comm/handle.h"
#include "runtime/comm/stream.h"

// NOLINTBEGIN(readability-identifier-naming): these names are the C API.

using railhead::comm::Guard;
using railhead::comm::NullArgument;
using railhead::comm::Stream;

namespace {

// Each failed call has left its text with its communicator.
rhResult_t WaitFor(Stream& stream, uint64_t since, uint64_t moment) {
  stream.Wait(moment);
  return stream.Result(since, moment);
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
    Stream& calls = *stream->stream;
    const uint64_t moment = calls.Now();
    const rhResult_t result = WaitFor(calls, calls.told(), moment);
    calls.Told(moment);
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
    *request = new rhRequest{stream->stream, stream->stream->told(), stream->stream->Now()};
    return rhSuccess;
  });
}

rhResult_t rhRequestTest(rhRequest_t request, int* done) {
  return Guard(nullptr, [&] {
    if (request == nullptr) return NullArgument(nullptr, "rhRequestTest", "request");
    if (done == nullptr) return NullArgument(nullptr, "rhRequestTest", "done");
    *done = request->stream->IsDone(request->moment) ? 1 : 0;
    return *done != 0 ? request->stream->Result(request->since, request->moment) : rhSuccess;
  });
}

rhResult_t rhRequestWait(rhRequest_t request) {
  return Guard(nullptr, [&] {
    if (request == nullptr) return NullArgument(nullptr, "rhRequestWait", "request");
    return WaitFor(*request->stream, request->since, request->moment);
  });
}

rhResult_t rhRequestFree(rhRequest_t request) {
  delete request;
  return rhSuccess;
}

// NOLINTEND(readability-identifier-naming)
