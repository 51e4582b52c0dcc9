// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/communicator/hang_reporter.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/background.h"
#include "runtime/base/now.h"
#include "runtime/bootstrap/tree.h"
#include "runtime/rails/mesh.h"
#include "runtime/recorder/contradiction.h"
#include "runtime/recorder/report.h"
#include "runtime/recorder/transfer_stillness.h"
#include "runtime/recorder/waiting.h"

namespace railhead::comm {
namespace {

static_assert(recorder::kPositionLimit <= bootstrap::kAnswerLimit);
// One bit per rank of the largest world, pairs of ranks, and lengths.
static_assert(recorder::kReportLimit + 65536 / 8 + 8 * recorder::kMostPairs + 16 <=
              bootstrap::kReportLimit);

// Maximum wait for the file of a failed job at the end of the process; the end of a communicator
// waits for a shorter time.
constexpr absl::Duration kLongestWriting = absl::Seconds(5);
constexpr absl::Duration kWritingMoment = absl::Seconds(1);
// Maximum wait for a reading of ports' counters at the end of the process.
constexpr absl::Duration kReadingMoment = absl::Seconds(1);

// Returns the time without progress after which a report is logged: long before the operation
// fails, but longer than ranks usually wait for each other.
absl::Duration PatienceFor(absl::Duration timeout) {
  return std::min(std::max(timeout / 6, absl::Seconds(1)), timeout / 2);
}

// The parts of the timeout in the header. Queries begin after half the interval of requests, since
// not all ranks get a report at the same time.
constexpr int kQueries = 16;
bootstrap::HangObserver::Pace PaceFor(absl::Duration timeout, int world_size) {
  constexpr int kLooks = 48;
  constexpr int kAnswers = 24;
  const int height = std::max(1, bootstrap::Height(0, world_size));
  return {std::min(timeout / kLooks, absl::Seconds(1)),
          std::min(timeout / kAnswers / height, absl::Milliseconds(500)), timeout / kQueries / 2};
}

}  // namespace

HangReporter::HangReporter(Options options)
    : options_(std::move(options)),
      patience_(PatienceFor(options_.timeout)),
      pace_(PaceFor(options_.timeout, options_.about.world_size)),
      stillness_(options_.timeout / kQueries, options_.timeout / 2, options_.about.rails),
      silence_(options_.timeout),
      next_log_(patience_) {}

HangReporter::~HangReporter() {
  if (writing_ == nullptr) return;
  std::unique_lock<std::mutex> lock(writing_->mutex);
  writing_->changed.WaitFor(lock, kWritingMoment, [this] { return writing_->done; });
}

absl::Time HangReporter::LastSign(int rank) {
  return options_.last_sign != nullptr ? options_.last_sign(rank) : absl::InfinitePast();
}

void HangReporter::Away(const std::string& name, bool away) {
  options_.log.Warn(absl::StrCat(
      name, ": the connection over the network of the rendezvous ",
      away ? "is lost; reconnecting; the rails are queried until then" : "is restored"));
}

bool HangReporter::Look(absl::Time now) {
  if (options_.ports != nullptr) LookAtPorts(now);
  JudgeSilence(now);
  const bool stalled = stillness_.Look(now, options_.recorder->Last(), options_.flows()) ||
                       Transfers(now, 0).still >= options_.timeout / kQueries;
  const std::lock_guard<std::mutex> lock(mutex_);
  return stalled && now - heard_ >= options_.timeout / kQueries;
}

void HangReporter::JudgeSilence(absl::Time now) {
  if (!verdict_.ok() || !silence_.Overdue(now)) return;
  verdict_ = absl::DeadlineExceededError(
      absl::StrCat("no answer for ", absl::FormatDuration(options_.timeout), ": ", conclusion_));
}

recorder::StillTransfers HangReporter::Transfers(absl::Time now, uint32_t query) const {
  return options_.transfers != nullptr ? options_.transfers(now, query)
                                       : recorder::StillTransfers();
}

void HangReporter::LookAtPorts(absl::Time now) {
  std::optional<PortReading::Result> last;
  {
    const std::lock_guard<std::mutex> lock(reading_->mutex);
    last = std::exchange(reading_->result, std::nullopt);
    if (now >= next_ports_ && !reading_->runs) reading_->runs = StartReading(now);
  }
  if (now >= next_ports_) next_ports_ = now + Congestion::kPace;
  if (!last.has_value()) return;
  for (const std::string& text : congestion_.Look(last->time, last->ports)) options_.log.Warn(text);
}

bool HangReporter::StartReading(absl::Time now) const {
  const absl::Time start = MonotonicNow();
  const auto read = [ports = options_.ports, reading = reading_, now, start] {
    std::vector<metrics::PortSnapshot> counters = ports();
    const std::lock_guard<std::mutex> lock(reading->mutex);
    reading->result = {std::move(counters), now + (MonotonicNow() - start)};
    reading->runs = false;
  };
  return TryRunInBackground(start + kReadingMoment, read).ok();
}

std::string HangReporter::Testify(absl::Time now, uint32_t query) {
  recorder::Position position =
      stillness_.At(now, options_.recorder->Last(), options_.recorder->collectives(),
                    options_.flows(), options_.awaited());
  position.recent = recorder::RecentOf(options_.recorder->Read());
  position.transfers = Transfers(now, query);
  return recorder::Encode(position);
}

std::string HangReporter::Conclude(const std::vector<Said>& ranks, absl::Time asked,
                                   absl::Time now) {
  using How = bootstrap::Inquiry::Answer::How;
  std::vector<recorder::Seen> seen;
  for (const Said& said : ranks) {
    recorder::Seen& one = seen.emplace_back();
    one.name = said.name;
    switch (said.answer.how) {
      case How::kNotAsked:
        break;
      case How::kLeft:
        one.how = recorder::Seen::How::kLeft;
        break;
      case How::kSilent:
        one.how = recorder::Seen::How::kSilent;
        break;
      case How::kGiven: {
        absl::StatusOr<recorder::Position> position = recorder::ParsePosition(said.answer.text);
        one.how = position.ok() ? recorder::Seen::How::kAnswered : recorder::Seen::How::kSilent;
        if (position.ok()) one.position = *std::move(position);
      }
    }
  }
  concluded_ = true;
  const absl::Duration moment = patience_ / 2;
  silence_.Note(asked, now, moment, seen);
  verdict_ = recorder::Contradiction(seen);
  conclusion_ = recorder::Report(seen);
  JudgeSilence(now);
  absl::Duration still;
  bool certain = true;
  for (const recorder::Seen& one : seen) {
    if (one.how == recorder::Seen::How::kSilent && one.silence < moment) certain = false;
    if (one.how != recorder::Seen::How::kAnswered || !one.position.last.has_value()) continue;
    still = std::max(still, one.position.last->still);
  }
  // Queries are earlier and more frequent than log lines should be.
  const bool log = certain && still >= next_log_;
  if (still < patience_) next_log_ = patience_;
  if (log) next_log_ = 2 * still;
  return recorder::Encode({conclusion_, recorder::WaitsForCallers(seen, options_.timeout),
                           still >= patience_, log, recorder::StuckPairs(seen)});
}

void HangReporter::Hear(const std::string& report, absl::Time now) {
  const absl::StatusOr<recorder::Word> word = recorder::ParseWord(report);
  if (!word.ok()) return;
  // Another rank queries this one, and judges.
  if (!std::exchange(concluded_, false)) silence_.Clear();
  const auto rank = static_cast<size_t>(options_.about.rank);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    waits_for_callers_ = rank < word->waits.size() && word->waits[rank];
    if (word->still) text_ = word->text;
    if (word->log) logged_ = word->text;
    stuck_with_.clear();
    for (const auto& [one, other] : word->stuck) {
      if (one == options_.about.rank) stuck_with_.push_back(other);
      if (other == options_.about.rank) stuck_with_.push_back(one);
    }
    heard_ = now;
  }
  changed_.NotifyAll();
  if (word->log) options_.log.Warn(absl::StrCat("the job makes no progress: ", word->text));
}

void HangReporter::Query(bootstrap::Watch& watch) {
  // After the pause that follows a report, up and down the tree, with a timeout for ranks that do
  // not reply at every level.
  const int height = bootstrap::Height(0, options_.about.world_size);
  const absl::Duration longest = pace_.fresh + pace_.answer * (2 * height + 3);
  const absl::Time now = MonotonicNow();
  watch.Ask();
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.WaitFor(lock, longest, [&] { return heard_ >= now || failed_; });
}

bool HangReporter::WaitsForCallers(bootstrap::Watch& watch) {
  Query(watch);
  const std::lock_guard<std::mutex> lock(mutex_);
  return !IsRecent(MonotonicNow()) || waits_for_callers_;
}

std::string HangReporter::Report(bootstrap::Watch& watch) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (MonotonicNow() - heard_ >= pace_.fresh) {
    lock.unlock();
    Query(watch);
    lock.lock();
  }
  return IsRecent(MonotonicNow()) ? text_ : "";
}

std::vector<int> HangReporter::StuckWith() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return IsRecent(MonotonicNow()) ? stuck_with_ : std::vector<int>();
}

void HangReporter::Failed(const absl::Status& verdict) {
  recorder::Flight flight = options_.about;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    failed_ = true;
    flight.report = logged_;
  }
  changed_.NotifyAll();
  if (options_.path.empty()) return;
  flight.time = MonotonicNow();
  flight.of_day = TimeOfDay(flight.time);
  flight.error = std::string(verdict.message());
  flight.flows = options_.flows();
  flight.operations = options_.recorder->Read();
  const auto writing = std::make_shared<Writing>();
  // A file system may hang; it must not delay the end of the job, nor other communicators.
  const absl::Status started = TryRunInBackground(
      MonotonicNow() + kLongestWriting,
      [flight = std::move(flight), path = options_.path, log = options_.log, writing] {
        const absl::Status written = recorder::WriteFile(path, recorder::ToJson(flight));
        log.Warn(written.ok() ? absl::StrCat("the last operations are in ", path)
                              : absl::StrCat("RAILHEAD_FLIGHT_RECORDER: ", written.message()));
        const std::lock_guard<std::mutex> lock(writing->mutex);
        writing->done = true;
        writing->changed.NotifyAll();
      });
  if (started.ok()) {
    writing_ = writing;
  } else {
    options_.log.Warn(
        absl::StrCat("RAILHEAD_FLIGHT_RECORDER: no file is written: ", started.message()));
  }
}

}  // namespace railhead::comm
