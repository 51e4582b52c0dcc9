// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/api/calls.h"

#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/caught.h"
#include "runtime/base/thread.h"
#include "runtime/collectives/point_to_point.h"
#include "runtime/comm/api/on_host.h"

namespace railhead::comm {

Group::Part& Group::Of(const char* name, rhComm_t comm, rhStream_t stream) {
  for (Part& part : parts) {
    if (part.comm == comm && part.stream == stream) return part;
  }
  Part& part = parts.emplace_back();
  part.name = name;
  part.comm = comm;
  part.stream = stream;
  return part;
}

Group& ThreadGroup() {
  thread_local Group group;
  return group;
}

namespace {

// Runs the body of a call. An exception ends the communicator: the other ranks wait for this one,
// and it may have receives into the caller's memory.
absl::Status RunBody(const char* name, Communicator& communicator,
                     absl::FunctionRef<absl::Status(Communicator&)> body) {
  return Caught([&] { return body(communicator); },
                [&](const absl::Status& why) { return communicator.GiveUp(name, why); });
}

}  // namespace

rhResult_t RunNow(const char* name, rhComm_t comm,
                  absl::FunctionRef<absl::Status(Communicator&)> body) {
  // Also checks calls recorded in a group, whose communicator may have changed since.
  if (const rhResult_t cannot = CannotUse(name, comm); cannot != rhSuccess) return cannot;
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
  return Report(comm, RunBody(name, *comm->communicator, body));
}

rhResult_t RunOnStream(const char* name, rhComm_t comm, rhStream_t stream, Body body,
                       const std::shared_ptr<const void>& group) {
  if (const rhResult_t cannot = CannotUse(name, comm); cannot != rhSuccess) return cannot;
  // Held until the call is queued: rhCommAbort drops only queued calls.
  const std::lock_guard<std::mutex> adding(comm->state);
  if (comm->on_stream > 0 && comm->stream.lock() != stream->stream) {
    Tell(comm, absl::StrCat(name, ": ", comm->on_stream.load(),
                            " calls of this communicator are still on another stream; use that "
                            "one, or wait for them first"));
    return rhInvalidUsage;
  }
  const auto run = [name, comm, body = std::move(body)](const absl::Status& cannot) {
    const rhResult_t result = Guard(comm, [&] {
      // An earlier blocking call may still be running.
      const std::lock_guard<std::mutex> use(comm->in_use);
      Communicator& communicator = *comm->communicator;
      return Report(comm, cannot.ok() ? RunBody(name, communicator, body)
                                      : communicator.GiveUp(name, cannot));
    });
    // After the last of these calls, a waiting thread may delete the communicator.
    const std::lock_guard<std::mutex> lock(comm->state);
    --comm->on_stream;
    comm->left_stream.notify_all();
    return result;
  };
  stream->stream->Add(comm, run, group);
  comm->stream = stream->stream;
  ++comm->on_stream;
  return rhSuccess;
}

}  // namespace railhead::comm

// NOLINTBEGIN(readability-identifier-naming): these names are the C API.

namespace {

using railhead::comm::Body;
using railhead::comm::Communicator;
using railhead::comm::Group;
using railhead::comm::Guard;
using railhead::comm::Report;
using railhead::comm::RunNow;
using railhead::comm::RunOnStream;
using railhead::comm::ThreadGroup;
using railhead::comm::WrongArgument;

// Runs collectives in their order, then all transfers concurrently.
absl::Status Do(const Group::Part& part, Communicator& communicator) {
  absl::Status status;
  for (const Body& call : part.calls) status.Update(call(communicator));
  if (!part.transfers.empty()) {
    status.Update(railhead::comm::Transfer(part.transfer_name, communicator, part.transfers));
  }
  return status;
}

// Reports if this rank's sends to itself do not match its receives.
rhResult_t CheckTransfers(const Group::Part& part) {
  const absl::Status wrong =
      railhead::collectives::WrongOwn(part.comm->communicator->rank(), part.transfers);
  if (wrong.ok()) return rhSuccess;
  return WrongArgument(part.comm, part.transfer_name, wrong);
}

}  // namespace

rhResult_t rhGroupStart() {
  ++ThreadGroup().depth;
  return rhSuccess;
}

rhResult_t rhGroupEnd() {
  return Guard(nullptr, [] {
    Group& noted = ThreadGroup();
    if (noted.depth == 0) {
      return Report(nullptr, rhInvalidUsage, "rhGroupEnd: called without rhGroupStart");
    }
    if (--noted.depth > 0) return rhSuccess;
    const Group group = std::exchange(noted, Group());
    for (const Group::Part& part : group.parts) {
      if (const rhResult_t wrong = CheckTransfers(part); wrong != rhSuccess) return wrong;
    }
    // Most groups have one communicator: their lists allocate no memory.
    absl::InlinedVector<rhResult_t, 4> results(group.parts.size(), rhSuccess);
    absl::InlinedVector<size_t, 4> blocking;
    std::shared_ptr<const int> together;
    std::vector<railhead::comm::Stream::Hold> holds;
    for (const Group::Part& part : group.parts) {
      if (part.stream == nullptr) continue;
      if (together == nullptr) together = std::make_shared<const int>();
      holds.emplace_back(part.stream->stream);
    }
    for (size_t i = 0; i < group.parts.size(); ++i) {
      const Group::Part& part = group.parts[i];
      if (part.stream == nullptr) {
        blocking.push_back(i);
      } else {
        const auto body = [part](Communicator& communicator) { return Do(part, communicator); };
        results[i] = RunOnStream(part.name, part.comm, part.stream, body, together);
      }
    }
    holds.clear();
    {
      // Ranks may record communicators in different orders, so none waits for another one.
      const auto run = [&group, &results](size_t i) {
        const Group::Part& part = group.parts[i];
        results[i] = Guard(part.comm, [&part] {
          return RunNow(part.name, part.comm,
                        [&part](Communicator& communicator) { return Do(part, communicator); });
        });
      };
      // The other ranks wait for this one.
      const auto fail = [&group, &results](size_t i, const absl::Status& why) {
        const Group::Part& part = group.parts[i];
        results[i] = Guard(part.comm, [&part, &why] {
          return RunNow(part.name, part.comm, [&part, &why](Communicator& communicator) {
            return communicator.GiveUp(part.name, why);
          });
        });
      };
      std::vector<std::jthread> others;
      for (size_t i = 1; i < blocking.size(); ++i) {
        absl::StatusOr<std::jthread> thread =
            railhead::TryStartThread<std::jthread>([&run, part = blocking[i]] { run(part); });
        if (thread.ok()) {
          others.push_back(*std::move(thread));
        } else {
          fail(blocking[i], thread.status());
        }
      }
      if (!blocking.empty()) run(blocking.front());
    }
    for (const rhResult_t result : results) {
      if (result != rhSuccess) return result;
    }
    return rhSuccess;
  });
}

// NOLINTEND(readability-identifier-naming)
