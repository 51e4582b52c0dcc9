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
#include "runtime/recorder/waiting.h"

namespace railhead::comm {
namespace {

static_assert(recorder::kPositionLimit <= bootstrap::kAnswerLimit);
// One bit per rank of the largest world, and two lengths.
static_assert(recorder::kReportLimit + 65536 / 8 + 8 <= bootstrap::kReportLimit);

// Maximum wait for the file of a failed job at the end of the process; the end of a communicator
// waits for a shorter time.
constexpr absl::Duration kLongestWriting = absl::Seconds(5);
constexpr absl::Duration kWritingMoment = absl::Seconds(1);
// Maximum wait for a reading of ports' counters at the end of the process.
constexpr absl::Duration kReadingMoment = absl::Seconds(1);

// Returns the time without progress after which ranks are queried: long before the operation fails,
// but longer than ranks usually wait for each other.
absl::Duration PatienceFor(absl::Duration timeout) {
  return std::min(std::max(timeout / 6, absl::Seconds(1)), timeout / 2);
}

bootstrap::HangObserver::Pace PaceFor(absl::Duration patience, bool tends) {
  return {std::min(patience / 4, absl::Seconds(1)), std::min(patience / 4, absl::Milliseconds(500)),
          patience / 2, tends ? rails::Mesh::kTendPause : absl::InfiniteDuration()};
}

}  // namespace

HangReporter::HangReporter(Options options)
    : options_(std::move(options)),
      patience_(PatienceFor(options_.timeout)),
      pace_(PaceFor(patience_, options_.tend != nullptr)),
      stillness_(patience_, options_.about.rails) {}

HangReporter::~HangReporter() {
  if (writing_ == nullptr) return;
  std::unique_lock<std::mutex> lock(writing_->mutex);
  writing_->changed.WaitFor(lock, kWritingMoment, [this] { return writing_->done; });
}

void HangReporter::Tend(absl::Time now) {
  if (options_.tend != nullptr) options_.tend(now);
}

absl::Time HangReporter::LastSign(int rank) {
  return options_.last_sign != nullptr ? options_.last_sign(rank) : absl::InfinitePast();
}

void HangReporter::Away(const std::string& name, bool away) {
  options_.log.Warn(
      absl::StrCat(name, ": the connection over the network of the rendezvous ",
                   away ? "is lost; reconnecting, and asking the rails meanwhile" : "is restored"));
}

bool HangReporter::Look(absl::Time now) {
  if (options_.ports != nullptr) LookAtPorts(now);
  return stillness_.Look(now, options_.recorder->Last(), options_.flows());
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

std::string HangReporter::Testify(absl::Time now) {
  recorder::Position position =
      stillness_.At(now, options_.recorder->Last(), options_.recorder->collectives(),
                    options_.flows(), options_.awaited());
  position.recent = recorder::RecentOf(options_.recorder->Read());
  return recorder::Encode(position);
}

std::string HangReporter::Conclude(const std::vector<Said>& ranks) {
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
  contradiction_ = recorder::Contradiction(seen);
  // False if the query came earlier, to find ranks that made different calls.
  const bool still = std::any_of(seen.begin(), seen.end(), [&](const recorder::Seen& one) {
    return one.position.last.has_value() && one.position.last->still >= patience_;
  });
  return recorder::Encode({recorder::Report(seen),
                           recorder::WaitsForCallers(seen, options_.timeout), still,
                           recorder::AllAnswer(seen)});
}

void HangReporter::Hear(const std::string& report, absl::Time now) {
  const absl::StatusOr<recorder::Word> word = recorder::ParseWord(report);
  if (!word.ok()) return;
  const auto rank = static_cast<size_t>(options_.about.rank);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    report_.waits_for_callers = rank < word->waits.size() && word->waits[rank];
    report_.all_answer = word->all_answer;
    // Users and the flight recorder's file get only reports that merit a warning.
    if (word->still) report_.text = word->text;
    heard_ = now;
    if (word->all_answer) {
      waited_for_callers_ = report_.waits_for_callers;
      all_answered_ = now;
    }
  }
  changed_.NotifyAll();
  if (word->still) options_.log.Warn(absl::StrCat("the job makes no progress: ", word->text));
}

HangReporter::Heard HangReporter::Ask(bootstrap::Watch& watch) {
  // Up and down the tree, with a timeout for ranks that do not reply at every level.
  const int height = bootstrap::Height(0, options_.about.world_size);
  const absl::Duration longest = pace_.answer * (2 * height + 3);
  std::unique_lock<std::mutex> lock(mutex_);
  const absl::Time now = MonotonicNow();
  if (now - heard_ < pace_.fresh) return Known();
  lock.unlock();
  watch.Ask();
  lock.lock();
  changed_.WaitFor(lock, longest, [&] { return heard_ >= now || failed_; });
  return Known();
}

HangReporter::Heard HangReporter::Known() const {
  const absl::Time now = MonotonicNow();
  Heard known = now - heard_ < options_.timeout ? report_ : Heard();
  if (!known.all_answer && now - all_answered_ < 2 * options_.timeout) {
    known.all_answer = true;
    known.waits_for_callers = waited_for_callers_;
  }
  return known;
}

void HangReporter::Failed(const absl::Status& verdict) {
  recorder::Flight flight = options_.about;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    failed_ = true;
    flight.report = report_.text;
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
