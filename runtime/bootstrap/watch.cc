// SPDX-License-Identifier: Apache-2.0
#include "runtime/bootstrap/watch.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "runtime/net/socket.h"

namespace railhead::bootstrap {
namespace {

// How long a rank that failed listens for an earlier verdict.
constexpr absl::Duration kVerdictPatience = absl::Milliseconds(500);

// News are short and the connections idle, so a frame nearly always fits into the socket's buffer;
// one that does not waits this long at most.
constexpr absl::Duration kSendPatience = absl::Milliseconds(200);

constexpr size_t kReadLimit = 65536;

}  // namespace

absl::StatusOr<std::unique_ptr<Watch>> Watch::Start(Bootstrap bootstrap) {
  net::Fd event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  net::Fd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event.valid() || !wake.valid()) return net::ErrnoError("eventfd", errno);
  std::unique_ptr<Watch> watch(new Watch(std::move(bootstrap), std::move(event), std::move(wake)));
  watch->thread_ = std::thread([raw = watch.get()] { raw->Run(); });
  return watch;
}

Watch::Watch(Bootstrap bootstrap, net::Fd event, net::Fd wake)
    : bootstrap_(std::move(bootstrap)),
      event_(std::move(event)),
      wake_(std::move(wake)),
      members_(bootstrap_.TakeMembers()),
      said_bye_(static_cast<size_t>(bootstrap_.world_size())) {}

Watch::~Watch() {
  stop_ = true;
  Wake();
  thread_.join();
}

absl::Status Watch::verdict() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return verdict_;
}

absl::Status Watch::Announce(const absl::Status& failure) {
  Post(FrameKind::kFail, EncodeFailure(failure));
  {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait_for(lock, absl::ToChronoMilliseconds(kVerdictPatience),
                      [this] { return !verdict_.ok(); });
  }
  Publish(failure);
  return verdict();
}

void Watch::Goodbye(absl::Time deadline) {
  Post(FrameKind::kBye, "");
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait_for(lock, absl::ToChronoMilliseconds(deadline - absl::Now()),
                    [this] { return everybody_left_ || !verdict_.ok(); });
}

void Watch::Post(FrameKind kind, std::string payload) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    pending_.emplace_back(kind, std::move(payload));
  }
  Wake();
}

void Watch::Wake() {
  const uint64_t one = 1;
  // A full counter wakes just as well.
  [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof one);
}

void Watch::Run() {
  std::vector<pollfd> entries;
  while (true) {
    // Read before sending, so that what was posted before the end is still said.
    const bool stopping = stop_;
    SendPending();
    if (stopping) return;
    entries.clear();
    entries.push_back({wake_.get(), POLLIN, 0});
    for (const Member& member : members_) entries.push_back({member.fd.get(), POLLIN, 0});
    // No deadline: this thread waits for news, and its owner wakes it to end it.
    if (::poll(entries.data(), entries.size(), -1) < 0) continue;
    if (entries[0].revents != 0) {
      uint64_t count = 0;
      [[maybe_unused]] const ssize_t got = ::read(wake_.get(), &count, sizeof count);
    }
    for (size_t i = 1; i < entries.size(); ++i) {
      if (entries[i].revents != 0) Serve(members_[i - 1]);
    }
    members_.erase(std::remove_if(members_.begin(), members_.end(),
                                  [](const Member& member) { return !member.fd.valid(); }),
                   members_.end());
  }
}

void Watch::Serve(Member& member) {
  const absl::StatusOr<bool> open =
      net::ReceiveSome(member.fd.get(), kReadLimit, member.reader.buffer());
  while (true) {
    const absl::StatusOr<std::optional<Frame>> frame = member.reader.Next();
    if (!frame.ok()) {
      Leave(member, frame.status().message());
      return;
    }
    if (!frame->has_value()) break;
    Handle(member, **frame);
  }
  if (!open.ok()) {
    Leave(member, open.status().message());
  } else if (!*open) {
    Leave(member, "its connection was closed");
  }
}

void Watch::Handle(Member& member, const Frame& frame) {
  switch (frame.kind) {
    case FrameKind::kFail:
      Judge(ParseFailure(frame.payload));
      break;
    case FrameKind::kBye:
      if (bootstrap_.rank() == 0) {
        said_bye_[static_cast<size_t>(member.rank)] = true;
        CountGoodbye();
      } else {
        said_bye_[0] = true;
        const std::lock_guard<std::mutex> lock(mutex_);
        everybody_left_ = true;
        changed_.notify_all();
      }
      break;
    default:
      Judge(absl::InternalError(
          absl::StrCat(bootstrap_.Describe(member.rank), " sent an unexpected kind of frame")));
  }
}

void Watch::Leave(Member& member, absl::string_view how) {
  member.fd.Reset();
  if (said_bye_[static_cast<size_t>(member.rank)]) return;
  Judge(absl::UnavailableError(absl::StrCat(bootstrap_.Describe(member.rank), " is gone: ", how)));
}

void Watch::SendPending() {
  std::deque<std::pair<FrameKind, std::string>> pending;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    pending.swap(pending_);
  }
  for (const auto& [kind, payload] : pending) {
    // What rank 0 has to say, it says to itself first, like everybody else.
    if (bootstrap_.rank() != 0) {
      SendToAll(EncodeFrame(kind, payload));
    } else if (kind == FrameKind::kBye) {
      CountGoodbye();
    } else {
      Judge(ParseFailure(payload));
    }
  }
}

void Watch::SendToAll(const std::string& frame) {
  for (const Member& member : members_) {
    if (!member.fd.valid()) continue;
    // A connection that does not take it is dead, and its reading side will say so.
    net::SendAll(member.fd.get(), frame, absl::Now() + kSendPatience).IgnoreError();
  }
}

void Watch::CountGoodbye() {
  if (++goodbyes_ < bootstrap_.world_size()) return;
  SendToAll(EncodeFrame(FrameKind::kBye, ""));
  const std::lock_guard<std::mutex> lock(mutex_);
  everybody_left_ = true;
  changed_.notify_all();
}

void Watch::Judge(const absl::Status& verdict) {
  // First the others: once this rank knows, its process may end at any moment, and the others would
  // take that for the cause.
  if (bootstrap_.rank() == 0 && !failed_) {
    SendToAll(EncodeFrame(FrameKind::kFail, EncodeFailure(verdict)));
  }
  Publish(verdict);
}

void Watch::Publish(const absl::Status& verdict) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!verdict_.ok()) return;
    verdict_ = verdict;
    changed_.notify_all();
  }
  failed_.store(true, std::memory_order_release);
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(event_.get(), &one, sizeof one);
}

}  // namespace railhead::bootstrap
