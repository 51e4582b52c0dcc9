// SPDX-License-Identifier: Apache-2.0
#include "runtime/bootstrap/watch.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/now.h"
#include "runtime/bootstrap/tree.h"

namespace railhead::bootstrap {
namespace {

// Maximum time that a rank that has reported a failure waits for the job's verdict.
constexpr absl::Duration kJobsVerdictPatience = absl::Seconds(1);

// News are short and the connections idle, so they nearly always fit into the sockets' buffers; a
// neighbour that takes none holds this rank up this long at most.
constexpr absl::Duration kSendPatience = absl::Milliseconds(200);

// Maximum wait until this rank's own thread has sent its leave; a peer that accepts nothing delays
// it by the time above.
constexpr absl::Duration kOwnGoodbye = absl::Seconds(1);

// Interval of repeated requests for the address of a rank.
constexpr absl::Duration kSearchPause = absl::Seconds(1);

}  // namespace

absl::StatusOr<std::unique_ptr<Watch>> Watch::Start(Bootstrap bootstrap,
                                                    const SilenceLimits& limits) {
  TreeConnections::Terms terms = {bootstrap.session(), limits};
  auto [node, links] = std::move(bootstrap).Take();
  absl::StatusOr<TreeChannels> channels = TreeChannels::Of(std::move(links), std::move(terms));
  if (!channels.ok()) return channels.status();
  std::unique_ptr<Watch> watch(new Watch(std::move(node), *std::move(channels)));
  watch->Wake();
  return watch;
}

Watch::~Watch() {
  stop_ = true;
  Wake();
  channels_.thread().AwaitEnd(*this);
}

void Watch::OnNews(std::function<void()> wake) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (failed_) wake();
  wakes_.push_back(std::move(wake));
}

absl::Status Watch::verdict() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return verdict_;
}

absl::Status Watch::Announce(const absl::Status& failure) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (failure_.ok()) failure_ = failure;
  Wake();
  // The thread has a separate deadline for this, after which it decides alone.
  changed_.WaitFor(lock, 2 * kJobsVerdictPatience, [this] { return !verdict_.ok(); });
  return verdict_.ok() ? failure : verdict_;
}

void Watch::Attend(HangObserver* observer) {
  {
    const std::lock_guard<std::mutex> lock(observer_mutex_);
    observer_ = observer;
  }
  Wake();
}

void Watch::Ask() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    asking_ = true;
  }
  Wake();
}

std::optional<std::string> Watch::Locate(int rank) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (const auto found = located_.find(rank); found != located_.end()) return found->second;
  if (sought_.emplace(rank, absl::InfinitePast()).second) Wake();
  return std::nullopt;
}

bool Watch::Goodbye(absl::Time deadline) {
  std::unique_lock<std::mutex> lock(mutex_);
  leaving_ = true;
  Wake();
  const auto over = [this] { return everybody_left_ || !verdict_.ok(); };
  changed_.WaitFor(lock, kOwnGoodbye, [&] { return said_goodbye_ || over(); });
  return changed_.WaitUntil(lock, deadline, over);
}

std::vector<Gone> Watch::gone() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return gone_;
}

std::optional<absl::Time> Watch::Turn() {
  // Read before sending, so that requests made before the end are still sent.
  const bool stopping = stop_;
  channels_.Open(*this, [this](int rank) { return LastSign(rank); });
  channels_.Deliver(node_);
  TellWhoIsAway();
  TakeWishes();
  const bool waiting = !node_.reported().ok() && node_.verdict().ok();
  if (!waiting) patience_ = absl::InfiniteFuture();
  if (waiting && patience_ == absl::InfiniteFuture()) {
    patience_ = MonotonicNow() + kJobsVerdictPatience;
  }
  if (MonotonicNow() >= patience_) node_.StopWaiting(node_.reported());
  const absl::Time again = std::min(Inquire(MonotonicNow()), Search(MonotonicNow()));
  Flush(stopping);
  Publish();
  if (stopping) {
    channels_.Close();
    return std::nullopt;
  }
  // Without an observer there is mostly no deadline: this watch waits for news, and for its owner.
  return std::min(patience_, again);
}

void Watch::TellWhoIsAway() {
  const std::map<int, bool> turned = channels_.TakeTurned();
  // At the end, changes of connections are not reported.
  if (turned.empty() || node_.leaving() || !node_.verdict().ok()) return;
  const std::lock_guard<std::mutex> lock(observer_mutex_);
  if (observer_ == nullptr) return;
  for (const auto& [rank, away] : turned) observer_->Away(node_.Describe(rank), away);
}

absl::Time Watch::LastSign(int rank) {
  const std::lock_guard<std::mutex> lock(observer_mutex_);
  return observer_ != nullptr ? observer_->LastSign(rank) : absl::InfinitePast();
}

void Watch::Flush(bool stopping) {
  // First the others: once this rank knows, its process may end at any moment, and the others
  // would take that for the cause.
  const bool news = !node_.verdict().ok() != failed_ || node_.leaving() != said_goodbye_ ||
                    node_.everybody_left() != everybody_left_;
  channels_.Flush(node_, news || stopping ? MonotonicNow() + kSendPatience : absl::InfinitePast());
}

absl::Time Watch::Search(absl::Time now) {
  std::map<int, std::string> located = node_.TakeLocated();
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [rank, place] : located) sought_.erase(rank);
  if (!located.empty()) {
    located_.merge(located);
    for (const auto& wake : wakes_) wake();
  }
  absl::Time again = absl::InfiniteFuture();
  for (auto& [rank, when] : sought_) {
    if (now >= when) {
      node_.Locate(rank);
      when = now + kSearchPause;
    }
    again = std::min(again, when);
  }
  return again;
}

void Watch::TakeWishes() {
  absl::Status failure;
  bool leaving = false;
  bool asking = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    failure = failure_;
    leaving = leaving_;
    asking = std::exchange(asking_, false);
  }
  if (!failure.ok()) node_.Report(failure);
  wanted_ = wanted_ || asking;
  if (leaving) node_.Goodbye();
}

void Watch::Hear(absl::Time now) {
  const std::optional<std::string> report = node_.inquiry().TakeReport();
  if (!report.has_value()) return;
  told_ = now;
  called_ = absl::InfiniteFuture();
  // The others should know as soon as this rank does.
  channels_.Flush(node_, now + kSendPatience);
  observer_->Hear(*report, now);
}

void Watch::TakeVerdict() {
  const absl::Status verdict = observer_->Verdict();
  if (verdict.ok()) return;
  node_.Report(verdict);
  // Only a rank whose requests those above it have not answered judges itself.
  node_.StopWaiting(verdict);
}

absl::Time Watch::Inquire(absl::Time now) {
  const std::lock_guard<std::mutex> lock(observer_mutex_);
  if (observer_ == nullptr || !node_.verdict().ok()) return absl::InfiniteFuture();
  const HangObserver::Pace pace = observer_->pace();
  Inquiry& inquiry = node_.inquiry();
  Hear(now);
  if (now >= told_ + pace.fresh) inquiry.Reopen();
  if (now >= next_look_) {
    next_look_ = now + pace.look;
    // Soon after a report there is little to add to it.
    if (observer_->Look(now) && !inquiry.quiet()) wanted_ = true;
    TakeVerdict();
  }
  if (std::exchange(wanted_, false)) inquiry.Call();
  if (!inquiry.called()) called_ = absl::InfiniteFuture();
  if (inquiry.called() && called_ == absl::InfiniteFuture()) called_ = now;
  // The root is never asked. The others wait until those above them must have answered, or have
  // asked in their turn.
  const int depth = Depth(node_.rank());
  const absl::Duration above =
      pace.answer * (depth == 0 ? 0 : depth + 1 + Height(0, node_.world_size()));
  if (now >= called_ + above) {
    asked_ = called_;
    inquiry.Ask();
  }

  if (inquiry.asked()) {
    gather_until_ = now + pace.answer * Height(node_.rank(), node_.world_size());
    inquiry.Testify(observer_->Testify(now, inquiry.number()));
  }
  if (now >= gather_until_) inquiry.Hurry();
  if (!inquiry.gathering()) gather_until_ = absl::InfiniteFuture();
  if (const auto answers = inquiry.TakeAnswers(); answers.has_value()) {
    std::vector<HangObserver::Said> said;
    for (const Inquiry::Answer& answer : *answers) {
      said.push_back({node_.Describe(static_cast<int>(said.size())), answer});
    }
    inquiry.Tell(observer_->Conclude(said, asked_, now));
    TakeVerdict();
  }
  Hear(now);
  const absl::Time reopens = inquiry.missed() ? told_ + pace.fresh : absl::InfiniteFuture();
  return std::min({next_look_, gather_until_, called_ + above, reopens});
}

void Watch::Publish() {
  const bool failed = !node_.verdict().ok();
  // Held until the observer knows, too: a caller that gets the failure may remove it at once.
  const std::lock_guard<std::mutex> witness_lock(observer_mutex_);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    verdict_ = node_.verdict();
    gone_ = node_.gone();
    said_goodbye_ = node_.leaving();
    everybody_left_ = node_.everybody_left();
  }
  changed_.NotifyAll();
  if (!failed || failed_) return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    failed_.store(true, std::memory_order_release);
    for (const auto& wake : wakes_) wake();
  }
  if (observer_ != nullptr) observer_->Failed(node_.verdict());
}

}  // namespace railhead::bootstrap
