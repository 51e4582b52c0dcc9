// SPDX-License-Identifier: Apache-2.0
#include "kube/queue/event_queue.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace railhead::kube {
namespace {

// Returns whether the server may accept the same Event later.
bool MayPassLater(const absl::Status& recorded) {
  return absl::IsUnavailable(recorded) || absl::IsDeadlineExceeded(recorded) ||
         absl::IsAborted(recorded) || absl::IsUnauthenticated(recorded);
}

}  // namespace

EventQueue::EventQueue(EventQueueOptions options, EventRecorder recorder, Random random,
                       std::function<absl::Time()> time_of_day,
                       std::function<void(const std::string&)> log,
                       std::function<absl::Time()> clock)
    : options_(options),
      recorder_(std::move(recorder)),
      random_(std::move(random)),
      time_of_day_(std::move(time_of_day)),
      log_(std::move(log)),
      clock_(std::move(clock)) {}

void EventQueue::Add(Event event, const std::string& tag) {
  event.at = time_of_day_();
  const absl::Time now = clock_();
  const std::lock_guard<std::mutex> lock(mutex_);
  if (waiting_.size() >= options_.max_events) Drop();
  waiting_.push_back({std::move(event), tag, now});
  changed_ = true;
  added_.notify_all();
}

std::set<std::string> EventQueue::TakeLost() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return std::exchange(lost_, {});
}

void EventQueue::Run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    const absl::Duration pause = Step();
    if (pause <= absl::ZeroDuration()) continue;
    std::unique_lock<std::mutex> lock(mutex_);
    const auto changed = [this] { return changed_; };
    if (pause == absl::InfiniteDuration()) {
      added_.wait(lock, stop, changed);
    } else {
      added_.wait_for(lock, stop, absl::ToChronoNanoseconds(pause), changed);
    }
  }
}

void EventQueue::Lose(const Waiting& waiting) { lost_.insert(waiting.tag); }

void EventQueue::Drop() {
  if (dropped_++ == 0) {
    log_(absl::StrCat(
        "the API server takes no Events, or takes them too slowly: dropping those "
        "that are older than ",
        absl::FormatDuration(options_.max_age), " and more than ", options_.max_events));
  }
  Lose(waiting_.front());
  waiting_.pop_front();
}

absl::Duration EventQueue::UntilDue(absl::Time now, std::deque<Waiting>::iterator& next) {
  absl::Duration until = absl::InfiniteDuration();
  for (next = waiting_.begin(); next != waiting_.end(); ++next) {
    const auto rest = rests_.find(next->event.space);
    if (rest == rests_.end() || rest->second.until <= now) return absl::ZeroDuration();
    until = std::min(until, rest->second.until - now);
  }
  return until;
}

void EventQueue::Settle(Waiting sent, const absl::Status& recorded, absl::Time now) {
  const std::string& space = sent.event.space;
  if (MayPassLater(recorded)) {
    Rest& rest = rests_[space];
    if (rest.failures++ == 0) log_(absl::StrCat("no Event: ", recorded.message()));
    rest.until = now + PauseAfter(options_.backoff, rest.failures, random_());
    const auto younger = [&](const Waiting& other) { return other.added >= sent.added; };
    const auto place = std::find_if(waiting_.begin(), waiting_.end(), younger);
    waiting_.insert(place, std::move(sent));
    if (waiting_.size() > options_.max_events) Drop();
    return;
  }
  rests_.erase(space);
  if (!recorded.ok()) {
    Lose(sent);
    if (rejection_ != recorded.message()) log_(absl::StrCat("no Event: ", recorded.message()));
    rejection_ = std::string(recorded.message());
  }
}

absl::Duration EventQueue::Step() {
  Waiting next;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    changed_ = false;
    const absl::Time now = clock_();
    while (!waiting_.empty() && now - waiting_.front().added > options_.max_age) Drop();
    if (waiting_.empty()) {
      if (dropped_ > 0) log_(absl::StrCat("dropped ", dropped_, " Events"));
      dropped_ = 0;
      rests_.clear();
      return absl::InfiniteDuration();
    }
    std::deque<Waiting>::iterator due;
    const absl::Duration until = std::max(UntilDue(now, due), recorder_.UntilAllowed());
    if (until > absl::ZeroDuration()) return until;
    next = std::move(*due);
    waiting_.erase(due);
  }
  const absl::Status recorded = recorder_.Record(next.event);
  const absl::Time now = clock_();
  const std::lock_guard<std::mutex> lock(mutex_);
  Settle(std::move(next), recorded, now);
  return absl::ZeroDuration();
}

}  // namespace railhead::kube
