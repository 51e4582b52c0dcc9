// SPDX-License-Identifier: Apache-2.0
#include "runtime/preflight/ping.h"

#include <poll.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/now.h"
#include "runtime/base/wire.h"
#include "runtime/net/socket.h"

namespace railhead::preflight {
namespace {

constexpr uint64_t kWarmUp = 4;
constexpr uint64_t kRounds = 21;

// How long to look before sleeping, as collectives do (rails/mesh.cc): on cores that many ranks
// share, those that wait would keep the others from answering.
constexpr absl::Duration kLookRound = absl::Microseconds(50);
// Between two looks at a link on which nothing moves: of one that cannot wake us, and else.
constexpr absl::Duration kShortPause = absl::Milliseconds(1);
constexpr absl::Duration kLongPause = absl::Milliseconds(20);

// One side's sends and receives, each of which waits.
class Side {
 public:
  Side(transport::Link& link, absl::Time deadline) : link_(link), deadline_(deadline) {}

  absl::Status Send(uint64_t number) {
    WireWriter writer;
    writer.U64(number);
    const std::string bytes = writer.Take();
    const auto* data = reinterpret_cast<const std::byte*>(bytes.data());
    return Until([&]() -> absl::StatusOr<bool> {
      absl::StatusOr<bool> taken = link_.TrySend({}, absl::MakeConstSpan(data, bytes.size()));
      if (!taken.ok() || *taken) return taken;
      absl::Status polled = Poll();
      if (!polled.ok()) return polled;
      return false;
    });
  }

  absl::Status Receive(uint64_t number) {
    absl::Status received = Until([&]() -> absl::StatusOr<bool> {
      absl::Status polled = Poll();
      if (!polled.ok()) return polled;
      return got_.has_value();
    });
    if (!received.ok()) return received;
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
        // Where ranks share a core, the answer may need it.
        std::this_thread::yield();
        continue;
      }
      absl::Status slept = Sleep();
      if (!slept.ok()) return slept;
    }
  }

  // Until the link stirs, or a moment is over.
  absl::Status Sleep() {
    if (absl::Status armed = link_.Arm(transport::Wake::kFrames); !armed.ok()) return armed;
    // What has come before the link was armed does not wake anybody.
    if (absl::Status polled = Poll(); !polled.ok() || got_.has_value()) return polled;
    pollfd entry = {link_.event_fd(), POLLIN, 0};
    const absl::Duration pause = entry.fd >= 0 ? kLongPause : kShortPause;
    ::poll(&entry, entry.fd >= 0 ? 1 : 0,
           net::PollTimeout(std::min(deadline_, MonotonicNow() + pause)));
    link_.Answer(MonotonicNow());
    return absl::OkStatus();
  }

  transport::Link& link_;
  const absl::Time deadline_;
  std::optional<uint64_t> got_;
};

}  // namespace

absl::StatusOr<absl::Duration> Ping(transport::Link& link, bool begins, absl::Time deadline) {
  Side side(link, deadline);
  std::vector<absl::Duration> times;
  for (uint64_t i = 0; i < kWarmUp + kRounds; ++i) {
    const absl::Time start = MonotonicNow();
    absl::Status done = begins ? side.Send(i) : side.Receive(i);
    if (done.ok()) done = begins ? side.Receive(i) : side.Send(i);
    if (!done.ok()) return done;
    if (i >= kWarmUp) times.push_back(MonotonicNow() - start);
  }
  if (absl::Status flushed = side.Flush(); !flushed.ok()) return flushed;
  if (!begins) return absl::ZeroDuration();
  std::nth_element(times.begin(), times.begin() + kRounds / 2, times.end());
  return times[kRounds / 2];
}

}  // namespace railhead::preflight
