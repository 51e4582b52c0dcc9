// SPDX-License-Identifier: Apache-2.0
#include "runtime/preflight/ping.h"

#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/now.h"
#include "runtime/base/wire.h"
#include "runtime/net/fd.h"
#include "runtime/net/socket.h"

namespace railhead::preflight {
namespace {

constexpr uint64_t kWarmUp = 4;
constexpr uint64_t kRounds = 21;
constexpr uint64_t kLargeRounds = 3;
// Shorter than the timeout of the next rail's first frame: the sides may end at different times.
constexpr double kLargePatience = 2.0 / 3;

// Spin time before a sleep, as in collectives (rails/mesh.cc): on cores that many ranks share,
// those that wait would keep the others from answering.
constexpr absl::Duration kLookRound = absl::Microseconds(50);
// Maximum sleep on a link on which nothing moves: if it cannot wake this side, and otherwise.
constexpr absl::Duration kShortPause = absl::Milliseconds(1);
constexpr absl::Duration kLongPause = absl::Milliseconds(20);

// One side's sends and receives, each of which waits.
class Side {
 public:
  static absl::StatusOr<std::unique_ptr<Side>> Create(transport::Link& link,
                                                      absl::Duration patience) {
    std::unique_ptr<Side> side(new Side(link, patience));
    if (!side->epoll_.valid()) return net::ErrnoError("epoll_create1", errno);
    const absl::StatusOr<bool> wakes = link.WakeBy(side->epoll_.get(), nullptr);
    if (!wakes.ok()) return wakes.status();
    side->wakes_ = *wakes;
    return side;
  }
  ~Side() { link_.WakeBy(-1, nullptr).IgnoreError(); }
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;

  absl::Status Send(uint64_t number, size_t size) {
    WireWriter writer;
    writer.U64(number);
    std::string bytes = writer.Take();
    bytes.resize(size);
    const auto* data = reinterpret_cast<const std::byte*>(bytes.data());
    return Until([&]() -> absl::StatusOr<bool> {
      absl::StatusOr<bool> taken = link_.TrySend({}, absl::MakeConstSpan(data, bytes.size()));
      if (!taken.ok() || *taken) return taken;
      absl::Status polled = Poll();
      if (!polled.ok()) return polled;
      return false;
    });
  }

  // One round trip.
  absl::Status Round(bool begins, uint64_t number, size_t size) {
    absl::Status done = begins ? Send(number, size) : Receive(number);
    if (!done.ok()) return done;
    return begins ? Receive(number) : Send(number, size);
  }

  // Starts the time of the next message anew.
  void Wait(absl::Duration patience) {
    patience_ = patience;
    deadline_ = MonotonicNow() + patience;
  }

  absl::Status Receive(uint64_t number) {
    absl::Status received = Until([&]() -> absl::StatusOr<bool> {
      absl::Status polled = Poll();
      if (!polled.ok()) return polled;
      return got_.has_value();
    });
    if (!received.ok()) return received;
    deadline_ = MonotonicNow() + patience_;
    const uint64_t got = *got_;
    got_.reset();
    if (got == number) return absl::OkStatus();
    return absl::InternalError(absl::StrCat("the peer answered ", got, " instead of ", number));
  }

  // Until nothing of this side depends on further polling.
  absl::Status Flush() {
    return Until([&]() -> absl::StatusOr<bool> {
      absl::Status polled = Poll();
      if (!polled.ok()) return polled;
      return link_.Flushed();
    });
  }

 private:
  absl::Status Poll() {
    return link_
        .Poll([this](const transport::FrameHeader&, absl::Span<const std::byte> payload) {
          if (got_.has_value()) return false;
          WireReader reader(
              absl::string_view(reinterpret_cast<const char*>(payload.data()), payload.size()));
          got_ = reader.U64();
          return true;
        })
        .moved.status();
  }

  template <class Try>
  absl::Status Until(Try attempt) {
    const absl::Time start = MonotonicNow();
    while (true) {
      const absl::StatusOr<bool> done = attempt();
      if (!done.ok()) return done.status();
      if (*done) return absl::OkStatus();
      const absl::Time now = MonotonicNow();
      if (now >= deadline_) return absl::DeadlineExceededError("it does not answer");
      if (now - start < kLookRound) {
        // If ranks share a core, the peer may need it to answer.
        std::this_thread::yield();
        continue;
      }
      absl::Status slept = Sleep();
      if (!slept.ok()) return slept;
    }
  }

  // Sleeps until the link has an event, or a short time is over.
  absl::Status Sleep() {
    if (absl::Status armed = link_.Arm(transport::Wake::kFrames); !armed.ok()) return armed;
    // Frames that came before the link was armed do not end the sleep.
    if (absl::Status polled = Poll(); !polled.ok() || got_.has_value()) return polled;
    epoll_event any{};
    ::epoll_wait(epoll_.get(), &any, 1,
                 net::PollTimeout(
                     std::min(deadline_, MonotonicNow() + (wakes_ ? kLongPause : kShortPause))));
    link_.Answer(MonotonicNow());
    return absl::OkStatus();
  }

  Side(transport::Link& link, absl::Duration patience)
      : link_(link),
        patience_(patience),
        deadline_(MonotonicNow() + patience),
        epoll_(::epoll_create1(EPOLL_CLOEXEC)) {}

  transport::Link& link_;
  absl::Duration patience_;
  absl::Time deadline_;  // anew with each message
  const net::Fd epoll_;
  bool wakes_ = false;
  std::optional<uint64_t> got_;
};

}  // namespace

absl::StatusOr<PingResult> Ping(transport::Link& link, bool begins, absl::Duration patience) {
  const absl::StatusOr<std::unique_ptr<Side>> created = Side::Create(link, patience);
  if (!created.ok()) return created.status();
  Side& side = **created;
  std::vector<absl::Duration> times;
  uint64_t number = 0;
  for (; number < kWarmUp + kRounds; ++number) {
    const absl::Time start = MonotonicNow();
    if (absl::Status done = side.Round(begins, number, kSmallPing); !done.ok()) return done;
    if (number >= kWarmUp) times.push_back(MonotonicNow() - start);
  }
  if (absl::Status flushed = side.Flush(); !flushed.ok()) return flushed;
  PingResult result;
  if (begins) {
    std::nth_element(times.begin(), times.begin() + kRounds / 2, times.end());
    result.time = times[kRounds / 2];
  }
  side.Wait(patience * kLargePatience);
  for (uint64_t i = 0; i < kLargeRounds && result.large.ok(); ++i) {
    result.large = side.Round(begins, number++, link.max_payload());
  }
  if (result.large.ok()) result.large = side.Flush();
  return result;
}

}  // namespace railhead::preflight
