// SPDX-License-Identifier: Apache-2.0
#include "runtime/bootstrap/reception.h"

#include <poll.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "runtime/net/socket.h"

namespace railhead::bootstrap {
namespace {

// How long a connection may stay without a whole introduction. A rank sends its own in the same
// breath as it connects.
constexpr absl::Duration kPatience = absl::Seconds(10);
// How many may stand at the door at once besides the ranks; beyond it the oldest goes.
constexpr size_t kMostStrangers = 64;
// How many rejections are worth a line each.
constexpr uint64_t kMostLines = 8;
// How long everything is quiet before people are told what is waited for.
constexpr absl::Duration kQuiet = absl::Seconds(3);

// How long to leave the door alone when the system cannot open it.
constexpr absl::Duration kBreath = absl::Milliseconds(200);

// How many missing ranks a message lists by number.
constexpr size_t kMostListed = 16;

}  // namespace

absl::Status Reception::Gather(absl::Time deadline) {
  const absl::Time start = absl::Now();
  absl::Time next_word = start + kQuiet;
  while (!Complete()) {
    const absl::Time now = absl::Now();
    if (now >= deadline) {
      std::string text = absl::StrCat(
          "waited ", absl::FormatDuration(absl::Trunc(now - start, absl::Milliseconds(100))),
          " at the rendezvous, but ", Missing(), " of ", present_.size(),
          " did not arrive: see whether their pods run and their MASTER_ADDR, MASTER_PORT and "
          "RAILHEAD_JOB are those of rank 0");
      if (rejected_ > 0) {
        absl::StrAppend(&text, "; ", rejected_, " connection(s) turned away, the last ",
                        last_rejection_);
      }
      return absl::DeadlineExceededError(text);
    }
    if (now >= next_word) {
      log_.Warn(
          absl::StrCat("still waiting for ", Missing(), " of ", present_.size(), " (",
                       absl::FormatDuration(absl::Trunc(now - start, absl::Seconds(1))), " of ",
                       absl::FormatDuration(absl::Trunc(deadline - start, absl::Seconds(1))), ")"));
      next_word = now + 3 * kQuiet;
    }
    PollOnce(std::min(deadline, next_word));
    // A rank may have come and gone again within that look.
    if (Complete()) PollOnce(absl::Now());
  }
  visitors_.clear();
  std::sort(members_.begin(), members_.end(),
            [](const Member& a, const Member& b) { return a.rank < b.rank; });
  return absl::OkStatus();
}

void Reception::PollOnce(absl::Time deadline) {
  std::vector<pollfd> entries;
  entries.push_back({listener_.get(), POLLIN, 0});
  for (const Visitor& visitor : visitors_) {
    entries.push_back({visitor.fd.get(), POLLIN, 0});
    deadline = std::min(deadline, visitor.patience);
  }
  for (const Member& member : members_) entries.push_back({member.fd.get(), POLLIN, 0});
  ::poll(entries.data(), entries.size(), net::PollTimeout(deadline));

  const absl::Time now = absl::Now();
  size_t index = 1;
  for (auto visitor = visitors_.begin(); visitor != visitors_.end(); ++index) {
    bool gone = entries[index].revents != 0 && Serve(*visitor);
    if (!gone && now >= visitor->patience) {
      Reject(*visitor, "it did not introduce itself in time");
      gone = true;
    }
    visitor = gone ? visitors_.erase(visitor) : std::next(visitor);
  }
  std::vector<int> readable;
  for (; index < entries.size(); ++index) {
    if (entries[index].revents != 0) readable.push_back(entries[index].fd);
  }
  DropMembersThatLeft(readable);
  if (entries[0].revents != 0) TakeVisitors();
}

void Reception::TakeVisitors() {
  while (true) {
    absl::StatusOr<net::Fd> fd = net::Accept(listener_.get());
    if (!fd.ok()) {
      // Out of descriptors or memory, perhaps not for long.
      log_.Warn(absl::StrCat("the rendezvous cannot take a connection: ", fd.status().message()));
      absl::SleepFor(kBreath);
      return;
    }
    if (!fd->valid()) return;
    if (visitors_.size() >= kMostStrangers + present_.size()) {
      Reject(visitors_.front(), "too many stood at the door");
      visitors_.pop_front();
    }
    std::string from = net::RemoteText(fd->get());
    visitors_.push_back(
        {std::move(*fd), FrameReader(kHelloLimit), absl::Now() + kPatience, std::move(from)});
  }
}

bool Reception::Serve(Visitor& visitor) {
  const absl::StatusOr<bool> open =
      net::ReceiveSome(visitor.fd.get(), kHelloLimit, visitor.reader.buffer());
  const absl::StatusOr<std::optional<Frame>> frame = visitor.reader.Next();
  if (!frame.ok()) {
    Reject(visitor, frame.status().message());
    return true;
  }
  if (!frame->has_value()) {
    if (open.ok() && *open) return false;
    Reject(visitor, "it left without an introduction");
    return true;
  }
  if ((*frame)->kind != FrameKind::kHello) {
    Reject(visitor, "its first frame is not an introduction");
    return true;
  }
  const absl::StatusOr<Hello> hello = ParseHello((*frame)->payload);
  if (!hello.ok()) {
    Reject(visitor, hello.status().message());
    return true;
  }
  const std::optional<Refusal> refusal = Judge(*hello, job_, present_);
  if (refusal.has_value()) {
    Reject(visitor, refusal->text);
    // The answer fits into an empty socket buffer; who does not read it learns nothing.
    net::SendAll(visitor.fd.get(), EncodeFrame(FrameKind::kRefuse, EncodeRefusal(*refusal)),
                 absl::Now())
        .IgnoreError();
    return true;
  }
  Admit(visitor, *hello);
  return true;
}

void Reception::Admit(Visitor& visitor, const Hello& hello) {
  present_[hello.rank] = true;
  names_[hello.rank] = hello.name;
  members_.push_back(
      {static_cast<int>(hello.rank), std::move(visitor.fd), std::move(visitor.reader)});
  log_.Info(absl::StrCat(DescribeRank(static_cast<int>(hello.rank), hello.name), " arrived from ",
                         visitor.from));
}

void Reception::Reject(const Visitor& visitor, absl::string_view why) {
  ++rejected_;
  last_rejection_ = absl::StrCat("from ", visitor.from, ": ", why);
  if (rejected_ <= kMostLines) {
    log_.Warn(absl::StrCat("the rendezvous turned away a connection ", last_rejection_));
  }
}

void Reception::DropMembersThatLeft(const std::vector<int>& readable) {
  // Nobody has anything to say before the welcome, so whatever is readable here is an end of the
  // connection or nonsense. A rank that restarts may come again.
  for (const int fd : readable) {
    const auto member = std::find_if(members_.begin(), members_.end(),
                                     [fd](const Member& m) { return m.fd.get() == fd; });
    log_.Warn(absl::StrCat(DescribeRank(member->rank, names_[static_cast<size_t>(member->rank)]),
                           " left the rendezvous before all had come; waiting for it to return"));
    present_[static_cast<size_t>(member->rank)] = false;
    members_.erase(member);
  }
}

std::string Reception::Missing() const {
  std::vector<size_t> missing;
  for (size_t rank = 0; rank < present_.size(); ++rank) {
    if (!present_[rank]) missing.push_back(rank);
  }
  const size_t more = missing.size() > kMostListed ? missing.size() - kMostListed : 0;
  missing.resize(missing.size() - more);
  return absl::StrCat(missing.size() == 1 ? "rank " : "ranks ", absl::StrJoin(missing, ", "),
                      more > 0 ? absl::StrCat(" and ", more, " more") : "");
}

}  // namespace railhead::bootstrap
