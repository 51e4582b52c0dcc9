// SPDX-License-Identifier: Apache-2.0
#include "runtime/bootstrap/rendezvous_server.h"

#include <poll.h>

#include <algorithm>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/printable_text.h"
#include "runtime/base/now.h"
#include "runtime/base/rank_causes.h"
#include "runtime/net/socket.h"

namespace railhead::bootstrap {
namespace {

// Time until the log first reports the missing ranks; then every three times that.
constexpr absl::Duration kQuietUntilTold = absl::Seconds(3);

// Maximum number of rejected ranks, lowest first, that are reported to ranks that have arrived.
constexpr size_t kMostNotices = 16;
constexpr size_t kNoticeLimit = 1024;

// Time for which ranks that arrive after a failed start get its cause.
constexpr absl::Duration kLateComers = absl::Seconds(2);

}  // namespace

absl::Status RendezvousServer::Gather(absl::Time deadline, const Halt& hopeless) {
  const absl::Time start = MonotonicNow();
  absl::Time next_word = start + kQuietUntilTold;
  while (!Complete()) {
    const absl::Time now = MonotonicNow();
    if (now >= deadline) return Late(now - start);
    if (absl::Status halted = CheckHalt(hopeless); !halted.ok()) {
      return absl::Status(halted.code(),
                          absl::StrCat("stopped waiting at the rendezvous for ", Missing(), " of ",
                                       world_size_, ": ", halted.message()));
    }
    if (now >= next_word) {
      log_.Warn(
          absl::StrCat("still waiting for ", Missing(), " of ", world_size_, " (",
                       absl::FormatDuration(absl::Trunc(now - start, absl::Seconds(1))), " of ",
                       absl::FormatDuration(absl::Trunc(deadline - start, absl::Seconds(1))), ")"));
      next_word = now + 3 * kQuietUntilTold;
    }
    PollOnce(NextCheck(hopeless, std::min(deadline, next_word)));
    Notify();
    if (absl::Status why = Hopeless(); !why.ok()) {
      TellLateComers(why);
      return why;
    }
    // A rank may have come and gone again within that look.
    if (Complete()) PollOnce(MonotonicNow());
  }
  return absl::OkStatus();
}

void RendezvousServer::Notify() {
  size_t notices = 0;
  for (const auto& [rank, rejection] : handshakes_.turned_away()) {
    if (rank >= world_size_ || guests_.count(rank) > 0) continue;
    if (++notices > kMostNotices) return;
    for (const auto& [number, guest] : guests_) {
      if (!notified_[number].insert(rank).second) continue;
      // A few short texts fit into the empty buffer of a connection.
      const std::string frame =
          EncodeFrame(FrameKind::kNotice, PrintableText(rejection.why, kNoticeLimit));
      net::SendAll(guest.fd.get(), frame, MonotonicNow()).IgnoreError();
    }
  }
}

void RendezvousServer::TellLateComers(const absl::Status& why) {
  handshakes_.RefuseAll(std::string(why.message()));
  const absl::Time end = MonotonicNow() + kLateComers;
  while (MonotonicNow() < end) {
    size_t known = guests_.size();
    for (const auto& [rank, rejection] : handshakes_.turned_away()) {
      if (rank < world_size_ && guests_.count(rank) == 0) ++known;
    }
    if (known + 1 >= world_size_) return;
    PollOnce(end);
  }
}

absl::Status RendezvousServer::Hopeless() const {
  if (!rival_.empty()) return absl::FailedPreconditionError(rival_);
  if (has_secret_) return absl::OkStatus();
  for (const uint32_t rank : handshakes_.cannot_prove()) {
    if (rank == 0 || rank >= world_size_ || guests_.count(rank) > 0) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("rejected a rank: ", handshakes_.turned_away().at(rank).why));
  }
  return absl::OkStatus();
}

absl::Status RendezvousServer::Late(absl::Duration waited) const {
  std::string text =
      absl::StrCat("waited ", absl::FormatDuration(absl::Trunc(waited, absl::Milliseconds(100))),
                   " at the rendezvous, but ", Missing(), " of ", world_size_, " did not arrive");
  // It is not they who are to blame.
  if (!handshakes_.trouble().ok()) {
    return absl::Status(handshakes_.trouble().code(),
                        absl::StrCat(text, ", because no more connections could be accepted: ",
                                     handshakes_.trouble().message(),
                                     "; the rendezvous needs one descriptor for each of ",
                                     world_size_, " ranks, in addition to the program's"));
  }
  // Ranks that meet at a shared socket know its address from a job that they were all in.
  absl::StrAppend(
      &text, ": check that their pods run, and that ",
      shares_socket_ ? "they make this communicator, too, of the same ranks" : same_on_all_ranks_);
  if (handshakes_.rejected() > 0) {
    absl::StrAppend(&text, "; ", handshakes_.rejected(), " connection(s) rejected");
  }
  RankCauses causes;
  for (const auto& [rank, rejection] : handshakes_.turned_away()) {
    if (guests_.count(rank) == 0) causes.Add(static_cast<int>(rank), rejection.name, rejection.why);
  }
  if (!causes.empty()) absl::StrAppend(&text, "; ", causes.Text());
  if (handshakes_.rejected() > 0 && causes.empty()) {
    absl::StrAppend(&text, ", the last ", handshakes_.last_rejection());
  }
  return absl::DeadlineExceededError(text);
}

void RendezvousServer::PollOnce(absl::Time deadline) {
  std::vector<pollfd> entries;
  entries.reserve(guests_.size());
  for (const auto& [rank, guest] : guests_) entries.push_back({guest.fd.get(), POLLIN, 0});
  const size_t guests = entries.size();
  handshakes_.Prepare(entries, deadline);
  ::poll(entries.data(), entries.size(), net::PollTimeout(deadline));

  // Ranks send nothing before the Welcome, so readable data is the end of a connection or a
  // protocol error.
  size_t index = 0;
  for (auto guest = guests_.begin(); guest != guests_.end(); ++index) {
    if (entries[index].revents == 0) {
      ++guest;
      continue;
    }
    log_.Warn(
        absl::StrCat(DescribeRank(static_cast<int>(guest->first), guest->second.hello.name),
                     " left the rendezvous before all ranks arrived; waiting for it to return"));
    notified_.erase(guest->first);
    guest = guests_.erase(guest);
  }
  for (HandshakeServer::Guest& guest : handshakes_.Serve(entries.data() + guests)) {
    const uint32_t rank = guest.hello.rank;
    log_.Info(absl::StrCat(DescribeRank(static_cast<int>(rank), guest.hello.name), " arrived from ",
                           guest.from));
    guests_.insert_or_assign(rank, std::move(guest));
  }
}

std::optional<Refusal> RendezvousServer::Object(const Hello& hello) {
  if (hello.world_size != world_size_) {
    return Refusal{
        true, absl::StrCat("rank ", hello.rank, " has WORLD_SIZE=", hello.world_size,
                           ", rank 0 has WORLD_SIZE=", world_size_, ": set the same on all ranks")};
  }
  if (hello.rank >= world_size_) {
    return Refusal{true,
                   absl::StrCat("rank ", hello.rank, " is not below WORLD_SIZE=", world_size_)};
  }
  if (hello.rank == 0) {
    rival_ = absl::StrCat(
        "two processes have RANK=0: ", self_, " and ", DescribeRank(0, hello.name),
        "; start one of each rank, and give each job its own MASTER_PORT or RAILHEAD_JOB");
    return Refusal{true, rival_};
  }
  if (guests_.count(hello.rank) > 0) {
    return Refusal{false, absl::StrCat("rank ", hello.rank,
                                       " has already joined: two processes have the same RANK")};
  }
  return std::nullopt;
}

std::string RendezvousServer::Missing() const {
  std::set<int> missing;
  for (uint32_t rank = 1; rank < world_size_; ++rank) {
    if (guests_.count(rank) == 0) missing.insert(static_cast<int>(rank));
  }
  return RankRanges(missing);
}

}  // namespace railhead::bootstrap
