// SPDX-License-Identifier: Apache-2.0
#include "plugins/nccl/profiler/profiler.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "runtime/base/now.h"

namespace railhead::nccl {
namespace {

constexpr absl::Duration kBetweenTurns = absl::Seconds(1);
constexpr size_t kMostNamed = 8;  // peers in a line of the log

std::string PeersOf(absl::Span<const Silence> silences) {
  std::string text = absl::StrJoin(silences.first(std::min(silences.size(), kMostNamed)), ", ",
                                   [](std::string* out, const Silence& silence) {
                                     absl::StrAppend(out, "rank ", silence.peer,
                                                     " of communicator ", silence.communicator);
                                   });
  if (silences.size() > kMostNamed) {
    absl::StrAppend(&text, " and ", silences.size() - kMostNamed, " others");
  }
  return text;
}

}  // namespace

Profiler& Profiler::OfProcess() {
  static auto* const profiler = new Profiler;
  return *profiler;
}

EventHandle Profiler::Open(const config::Settings& settings, Tracker::Communicator communicator,
                           std::optional<int> rank) {
  const std::lock_guard<std::mutex> opening(opening_);
  const Logger log(settings.log_level, "NCCL plugin");
  if (page_ == nullptr) page_ = MetricsPage::OfProcess(settings, log);
  if (page_ != nullptr) {
    if (rank.has_value()) {
      page_->Learn({*rank, communicator.ranks});
      knows_rank_ = true;
    }
    if (shown_ == nullptr) {
      shown_ = page_->Show([this](metrics::Snapshot& snapshot) {
        With([&](Tracker& tracker, Nanoseconds now) { tracker.Report(now, snapshot); });
      });
    }
  }
  const EventHandle handle = With([&](Tracker& tracker, Nanoseconds) {
    log_ = log;
    watching_ = true;
    return tracker.Open(std::move(communicator));
  });
  if (handle == 0) return 0;
  ++open_;
  if (thread_ == nullptr) {
    absl::StatusOr<std::shared_ptr<net::WatchThread>> thread = net::WatchThread::Get();
    // Without the thread, only silent peers are not found.
    if (!thread.ok()) {
      log.Warn(absl::StrCat("no thread to watch for silent ranks: ", thread.status().message()));
      return handle;
    }
    thread_ = *std::move(thread);
    thread_->Wake(*this);
  }
  return handle;
}

void Profiler::Close(EventHandle communicator) {
  const std::lock_guard<std::mutex> opening(opening_);
  const bool was_open =
      With([&](Tracker& tracker, Nanoseconds now) { return tracker.Close(communicator, now); });
  if (!was_open || --open_ > 0 || thread_ == nullptr) return;
  With([&](Tracker&, Nanoseconds) {
    watching_ = false;
    return 0;
  });
  thread_->Wake(*this);
  thread_->AwaitEnd(*this);
  thread_.reset();
}

void Profiler::LearnRank(int rank) {
  if (knows_rank_.load(std::memory_order_relaxed) || knows_rank_.exchange(true)) return;
  const std::lock_guard<std::mutex> opening(opening_);
  if (page_ != nullptr) page_->Learn({rank, 1});
}

std::optional<absl::Time> Profiler::Turn() {
  Tracker::Changes changes;
  Logger log;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!watching_) return std::nullopt;
    const Nanoseconds now = SystemTime::Steady();
    tracker_.Sweep(now);
    changes = tracker_.CheckSilence(now);
    log = log_;
  }
  if (!changes.silent.empty()) {
    log.Warn(absl::StrCat("no data for ",
                          absl::ToInt64Seconds(absl::Nanoseconds(changes.silent.front().duration)),
                          " s from ", PeersOf(changes.silent),
                          ". The cause is a rank that others wait for and that waits for none: "
                          "look at its process"));
  }
  if (!changes.resumed.empty()) {
    log.Info(absl::StrCat("data again from ", PeersOf(changes.resumed)));
  }
  return MonotonicNow() + kBetweenTurns;
}

}  // namespace railhead::nccl
