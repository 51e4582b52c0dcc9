// SPDX-License-Identifier: Apache-2.0
//
// Execution of a communicator's calls: choice of the algorithm, waits, measurement and autotuning.
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/alarm.h"
#include "runtime/base/caught.h"
#include "runtime/collectives/collective.h"
#include "runtime/collectives/messenger.h"
#include "runtime/collectives/recursive_doubling.h"
#include "runtime/comm/communicator/communicator.h"
#include "runtime/recorder/flight_recorder.h"
#include "runtime/shm/patience.h"
#include "runtime/tuner/algorithm_trial.h"
#include "runtime/tuner/autotuner.h"

namespace railhead::comm {

using collectives::Algorithm;
using collectives::Collective;
using collectives::Messenger;

Communicator::Work Communicator::Choose(collectives::Call::Arguments arguments, size_t bytes) {
  arguments.number = recorder_.collectives();
  Work work = {arguments.collective, Algorithm::kSharedMemory, bytes, collectives::Call(arguments)};
  if (group_ != nullptr && IsDoneInMemory(arguments.collective)) return work;
  const std::lock_guard<std::mutex> lock(learning_);
  work.turn = autotuner_->Next(arguments.collective, bytes);
  work.algorithm = work.turn.choice.algorithm;
  return work;
}

absl::Status Communicator::Run(const Work& work, Shared shared, InPlaces in_places,
                               Messages messages) {
  if (work.algorithm != Algorithm::kHierarchical) return Run(work, shared, messages);
  return Measured(work, [&] { return in_places(*hierarchy_); });
}

absl::Status Communicator::Run(const Work& work, Shared shared, Messages messages) {
  if (group_ == nullptr) return Run(work, messages);
  group_->Expect(work.call, work.bytes);
  return Measured(work, [&] { return shared(*group_, SharedPatience()); });
}

absl::Status Communicator::Run(const Work& work, Messages messages) {
  return Measured(work, [&] { return Exchange(work, messages); });
}

absl::Status Communicator::Exchange(const Work& work, Messages messages) {
  if (mailbox_ != nullptr) {
    // Ranks that made different calls may not exchange a message.
    if (work.collective != Collective::kSendReceive) {
      group_->Expect(work.call);
      if (absl::Status met = group_->Announce(SharedPatience()); !met.ok()) return met;
    }
    mailbox_->Begin(SharedPatience());
    mailbox_->Expect(work.call);
    return messages(*mailbox_);
  }
  return OverRails(setup_.settings.timeout, [&](Messenger& messenger) {
    messenger.Expect(work.call);
    return messages(messenger);
  });
}

absl::Status Communicator::OverRails(absl::Duration patience, Messages messages,
                                     const std::function<bool()>* go_on) {
  patient_->Begin(patience, go_on);
  const absl::Status status = messages(*patient_);
  return status.ok() ? patient_->Finish() : status;
}

absl::Status Communicator::Measured(const Work& work, absl::FunctionRef<absl::Status()> run) {
  if (!failure_.ok()) return failure_;
  const int64_t start = clock_.Now();
  const uint64_t number =
      recorder_.Begin(work.collective, work.algorithm, work.call, work.bytes, start, Moved());
  // A call that need not wait would not notice it.
  absl::Status status = Alarm{&watch_->failed()}.Check();
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
    const std::string report =
        absl::IsDeadlineExceeded(status) ? hang_reporter_->Report(*watch_) : std::string();
    recorder_.End(recorder::State::kFailed, clock_.Now(), Moved());
    failure_ =
        Fail(absl::StrCat(Name(work.collective), " number ", number, " (", work.bytes, " bytes)"),
             status, report);
    return failure_;
  }
  recorder_.End(recorder::State::kDone, end, Moved());
  stats_.Record(work.collective, work.algorithm, work.bytes, end - start);
  return absl::OkStatus();
}

absl::Status Communicator::Learn(const Work& work, double seconds) {
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
        messenger, rank_, world_size_, {rhFloat64, rhAvg, world_size_, {}},
        reinterpret_cast<const std::byte*>(mine.data()), reinterpret_cast<std::byte*>(all.data()),
        mine.size());
  });
  if (!agreed.ok()) return agreed;
  const std::lock_guard<std::mutex> lock(learning_);
  trial->Agree(all);
  return absl::OkStatus();
}

absl::Status Communicator::Begin(const Work& work) {
  // Not all ranks call sends and receives.
  if (hierarchy_ == nullptr || work.collective == Collective::kSendReceive) return absl::OkStatus();
  return hierarchy_->Begin(work.call);
}

shm::Patience Communicator::SharedPatience() const {
  return {group_->Look(), setup_.settings.timeout, &watch_->failed(), fabric_.decision.crowded,
          &go_on_,        &group_->spread()};
}

}  // namespace railhead::comm
