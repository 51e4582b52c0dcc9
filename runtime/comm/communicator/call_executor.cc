// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/communicator/call_executor.h"

#include <mutex>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "runtime/base/alarm.h"
#include "runtime/base/caught.h"
#include "runtime/collectives/algorithms.h"
#include "runtime/collectives/call.h"
#include "runtime/collectives/collective.h"
#include "runtime/collectives/messenger.h"
#include "runtime/collectives/operation.h"
#include "runtime/collectives/point_to_point.h"
#include "runtime/collectives/ways.h"
#include "runtime/recorder/flight_recorder.h"
#include "runtime/recorder/position.h"
#include "runtime/shm/patience.h"
#include "runtime/tuner/algorithm_trial.h"
#include "runtime/tuner/autotuner.h"

namespace railhead::comm {

using collectives::Algorithm;
using collectives::Collective;
using collectives::Messenger;
using collectives::Operation;

template <class Body>
absl::Status CallExecutor::Measured(const Work& work, const Body& run) {
  if (!failure_.ok()) return failure_;
  const int64_t start = clock_.Now();
  const uint64_t number = recorder_.Begin(work.collective, work.algorithm, work.call, work.bytes,
                                          start, paths_.Moved());
  // A call that need not wait would not notice it.
  absl::Status status = Alarm{options_.failed}.Check();
  int64_t end = start;
  const auto all = [&] {
    if (status.ok()) status = Begin(work);
    if (status.ok()) status = run();
    end = clock_.Now();
    if (status.ok()) status = Learn(work, static_cast<double>(end - start) * 1e-9);
    return status;
  };
  status = Caught(all, [](const absl::Status& why) { return why; });
  if (!status.ok()) {
    // Query the ranks before the abort: the cause is still visible, because no rank was stopped
    // yet.
    const std::string report = absl::IsDeadlineExceeded(status) ? options_.report() : std::string();
    recorder_.End(recorder::State::kFailed, clock_.Now(), paths_.Moved());
    return Fail(
        absl::StrCat(Name(work.collective), " number ", number, " (", work.bytes, " bytes)"),
        status, report);
  }
  recorder_.End(recorder::State::kDone, end, paths_.Moved());
  stats_.Record(work.collective, work.algorithm, work.bytes, end - start);
  return absl::OkStatus();
}

absl::Status CallExecutor::Run(const Operation& operation) {
  const Work work = Choose(operation);
  return Measured(work, [&] { return Execute(work, operation); });
}

absl::Status CallExecutor::Transfer(absl::Span<const collectives::Transfer> transfers) {
  size_t bytes = 0;
  for (const collectives::Transfer& transfer : transfers) bytes += transfer.bytes;
  const collectives::Call call({.collective = Collective::kSendReceive});
  {
    const std::lock_guard<std::mutex> lock(awaiting_);
    awaited_.clear();
    for (const collectives::Transfer& transfer : transfers) {
      if (awaited_.size() < recorder::kMostAwaited) awaited_.push_back(transfer.peer);
    }
  }
  const Work work = {Collective::kSendReceive, Algorithm::kDirect, bytes, call};
  return Measured(work, [&] {
    return Exchange(work, [&](Messenger& messenger) {
      return collectives::RunTransfers(messenger, options_.rank, transfers);
    });
  });
}

CallExecutor::Work CallExecutor::Choose(const Operation& operation) {
  const Collective collective = operation.collective;
  Work work = {collective, Algorithm::kSharedMemory, BytesOf(operation),
               CallOf(operation, recorder_.collectives())};
  if (IsUneven(operation)) {
    work.algorithm = Algorithm::kPairwise;
  } else if (paths_.group == nullptr) {
    const std::lock_guard<std::mutex> lock(learning_);
    work.turn = autotuner_->Next(collective, work.bytes);
    work.algorithm = work.turn.choice.algorithm;
  }
  return work;
}

absl::Status CallExecutor::Execute(const Work& work, const Operation& operation) {
  if (work.algorithm == Algorithm::kSharedMemory) {
    paths_.group->Expect(work.call, work.bytes);
    return paths_.group->Run(operation, SharedPatience());
  }
  if (work.collective != Collective::kBarrier) return OverMessages(work, operation);
  std::byte token{1};
  return OverMessages(work, BarrierAsAllReduce(operation, &token));
}

absl::Status CallExecutor::OverMessages(const Work& work, const Operation& operation) {
  const bool in_places = work.algorithm == Algorithm::kHierarchical;
  const Algorithm algorithm = in_places ? work.turn.choice.among_places : work.algorithm;
  collectives::AlgorithmFunction& run = *collectives::FindWay(work.collective, algorithm)->run;
  if (in_places) return paths_.hierarchy->Run(operation, work.call, run);
  return Exchange(work,
                  [&](Messenger& messenger) { return run(messenger, options_.rank, operation); });
}

absl::Status CallExecutor::Exchange(const Work& work, Messages messages) {
  if (paths_.mailbox != nullptr) {
    // Ranks that made different calls may not exchange a message.
    if (work.collective != Collective::kSendReceive) {
      paths_.group->Expect(work.call);
      if (absl::Status met = paths_.group->Announce(SharedPatience()); !met.ok()) return met;
    }
    paths_.mailbox->Begin(SharedPatience());
    paths_.mailbox->Expect(work.call);
    return messages(*paths_.mailbox);
  }
  return OverRails(options_.timeout, [&](Messenger& messenger) {
    messenger.Expect(work.call);
    return messages(messenger);
  });
}

absl::Status CallExecutor::OverRails(absl::Duration patience, Messages messages,
                                     const std::function<bool()>* go_on) {
  paths_.patient->Begin(patience, go_on);
  const absl::Status status = messages(*paths_.patient);
  return status.ok() ? paths_.patient->Finish() : status;
}

absl::Status CallExecutor::Learn(const Work& work, double seconds) {
  tuner::AlgorithmTrial* const trial = work.turn.trial;
  if (trial == nullptr) return absl::OkStatus();
  tuner::AlgorithmTrial::Times mine;
  {
    const std::lock_guard<std::mutex> lock(learning_);
    if (!trial->Record(seconds * work.turn.scale)) return absl::OkStatus();
    mine = trial->times();
  }
  tuner::AlgorithmTrial::Times all{};
  absl::Status agreed = Exchange(work, [&](Messenger& messenger) {
    return collectives::RecursiveDoublingAllReduce(
        messenger, options_.rank,
        {.collective = Collective::kAllReduce,
         .ranks = options_.world_size,
         .reduction = {rhFloat64, rhAvg, options_.world_size, {}},
         .send = reinterpret_cast<const std::byte*>(mine.data()),
         .receive = reinterpret_cast<std::byte*>(all.data()),
         .count = mine.size()});
  });
  if (!agreed.ok()) return agreed;
  const std::lock_guard<std::mutex> lock(learning_);
  trial->Agree(all);
  return absl::OkStatus();
}

absl::Status CallExecutor::Begin(const Work& work) {
  // Not all ranks call sends and receives.
  const bool checks = paths_.hierarchy != nullptr && work.collective != Collective::kSendReceive;
  return checks ? paths_.hierarchy->Begin(work.call) : absl::OkStatus();
}

shm::Patience CallExecutor::SharedPatience() const {
  return {paths_.group->Look(), options_.timeout, options_.failed,
          options_.crowded,     options_.go_on,   &paths_.group->spread()};
}

absl::Status CallExecutor::Fail(absl::string_view what, const absl::Status& cause,
                                absl::string_view report) {
  if (!failure_.ok()) return failure_;
  absl::Status withdrawn;
  if (shm::Group* const group = paths_.GroupHere(); group != nullptr) withdrawn = group->Withdraw();
  failure_ = options_.fail(what, cause, report);
  if (!withdrawn.ok()) {
    failure_ = absl::Status(failure_.code(), absl::StrCat(failure_.message(),
                                                          "; other ranks can still write to the "
                                                          "receive buffer, so free it: ",
                                                          withdrawn.message()));
  }
  return failure_;
}

void CallExecutor::Use(tuner::Tuner tuner) {
  const std::lock_guard<std::mutex> lock(learning_);
  autotuner_.emplace(std::move(tuner));
}

std::string CallExecutor::Explain(Collective collective, size_t bytes) const {
  const std::lock_guard<std::mutex> lock(learning_);
  return autotuner_->Explain(collective, bytes);
}

std::vector<int> CallExecutor::awaited() const {
  const std::lock_guard<std::mutex> lock(awaiting_);
  return awaited_;
}

}  // namespace railhead::comm
