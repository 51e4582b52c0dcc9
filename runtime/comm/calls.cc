// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/calls.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/comm/on_host.h"

namespace railhead::comm {

Group& ThreadGroup() {
  thread_local Group group;
  return group;
}

rhResult_t RunNow(const char* name, rhComm_t comm,
                  absl::FunctionRef<absl::Status(Communicator&)> body) {
  const std::unique_lock<std::mutex> use(comm->in_use, std::try_to_lock);
  if (!use.owns_lock()) {
    return Report(comm, rhInvalidUsage,
                  absl::StrCat(name, ": another thread is using this communicator"));
  }
  if (const int on_stream = comm->on_stream; on_stream > 0) {
    return Report(comm, rhInvalidUsage,
                  absl::StrCat(name, ": ", on_stream,
                               " calls of this communicator are still on a stream; use the same "
                               "stream, or wait for them first"));
  }
  return Report(comm, body(*comm->communicator));
}

rhResult_t RunOnStream(const char* name, rhComm_t comm, rhStream_t stream, Body body) {
  // Until the call is there: whoever aborts the communicator drops what it finds.
  const std::lock_guard<std::mutex> adding(comm->state);
  if (comm->on_stream > 0 && comm->stream.lock() != stream->stream) {
    comm->last_error = absl::StrCat(name, ": ", comm->on_stream.load(),
                                    " calls of this communicator are still on another stream; "
                                    "use that one, or wait for them first");
    return rhInvalidUsage;
  }
  stream->stream->Add(comm, [comm, body = std::move(body)] {
    const rhResult_t result = Guard(comm, [&] {
      // A blocking call that began before may still be running.
      const std::lock_guard<std::mutex> use(comm->in_use);
      return Report(comm, body(*comm->communicator));
    });
    // From the last of these on, who waits for them may free the communicator.
    const std::lock_guard<std::mutex> lock(comm->state);
    --comm->on_stream;
    comm->left_stream.notify_all();
    return result;
  });
  comm->stream = stream->stream;
  ++comm->on_stream;
  return rhSuccess;
}

}  // namespace railhead::comm

// NOLINTBEGIN(readability-identifier-naming): these names are the C API.

using railhead::comm::Body;
using railhead::comm::Communicator;
using railhead::comm::Group;
using railhead::comm::Guard;
using railhead::comm::Report;
using railhead::comm::Submit;
using railhead::comm::ThreadGroup;

rhResult_t rhGroupStart() {
  ++ThreadGroup().depth;
  return rhSuccess;
}

rhResult_t rhGroupEnd() {
  return Guard(nullptr, [] {
    Group& noted = ThreadGroup();
    if (noted.depth == 0) {
      return Report(nullptr, rhInvalidUsage, "rhGroupEnd: there was no rhGroupStart before it");
    }
    if (--noted.depth > 0) return rhSuccess;
    const Group group = std::exchange(noted, Group());
    rhResult_t result = rhSuccess;
    const auto submit = [&](const char* name, rhComm_t comm, rhStream_t stream, const Body& body) {
      const rhResult_t submitted = Submit(name, comm, stream, body);
      if (result == rhSuccess) result = submitted;
    };
    for (const Group::Call& call : group.calls) {
      submit(call.name, call.comm, call.stream, call.body);
    }
    // The transfers of a communicator together, where its first one is.
    for (size_t first = 0; first < group.transfers.size(); ++first) {
      const Group::Transfer& transfer = group.transfers[first];
      std::vector<railhead::collectives::Transfer> together;
      bool begun = false;
      for (size_t i = 0; i < group.transfers.size(); ++i) {
        if (group.transfers[i].comm != transfer.comm) continue;
        begun = begun || i < first;
        together.push_back(group.transfers[i].transfer);
      }
      if (begun) continue;
      submit(transfer.name, transfer.comm, transfer.stream,
             [name = transfer.name, together = std::move(together)](Communicator& communicator) {
               return railhead::comm::Transfer(name, communicator, together);
             });
    }
    return result;
  });
}

// NOLINTEND(readability-identifier-naming)
