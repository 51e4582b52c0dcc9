// SPDX-License-Identifier: Apache-2.0
#include "runtime/bootstrap/bootstrap.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "runtime/base/wire.h"
#include "runtime/bootstrap/hello.h"
#include "runtime/bootstrap/reception.h"
#include "runtime/net/socket.h"

namespace railhead::bootstrap {
namespace {

// What one rank may give to an exchange, and what rank 0 may send back for each rank.
constexpr size_t kBlobLimit = size_t{1} << 20;
// Longer texts of errors are cut on their way.
constexpr size_t kFailureLimit = 4096;
// Rank 0 judges at the deadline; the others give its verdict this long to arrive.
constexpr absl::Duration kVerdictGrace = absl::Seconds(5);
// How long a failing rank 0 waits until the others have read why.
constexpr absl::Duration kFarewell = absl::Seconds(1);

constexpr absl::Duration kFirstRetry = absl::Milliseconds(50);
constexpr absl::Duration kLastRetry = absl::Seconds(1);
constexpr absl::Duration kOneDial = absl::Seconds(5);
constexpr absl::Duration kQuiet = absl::Seconds(3);

// Waits for the next frame of one connection.
absl::StatusOr<Frame> ReadFrame(Member& member, absl::Time deadline) {
  while (true) {
    absl::StatusOr<std::optional<Frame>> frame = member.reader.Next();
    if (!frame.ok()) return frame.status();
    if (frame->has_value()) return **std::move(frame);
    if (absl::Status ready = net::WaitReadable(member.fd.get(), deadline); !ready.ok()) {
      return ready;
    }
    const absl::StatusOr<bool> open =
        net::ReceiveSome(member.fd.get(), kBlobLimit, member.reader.buffer());
    if (open.ok() && *open) continue;
    // The end of the stream, or a reset; a whole frame may have come before it.
    frame = member.reader.Next();
    if (!frame.ok()) return frame.status();
    if (frame->has_value()) return **std::move(frame);
    if (!open.ok()) return open.status();
    return absl::UnavailableError("the connection was closed");
  }
}

std::string EncodeParts(const std::vector<std::string>& parts) {
  WireWriter writer;
  writer.U32(static_cast<uint32_t>(parts.size()));
  for (const std::string& part : parts) writer.String(part);
  return writer.Take();
}

absl::StatusOr<std::vector<std::string>> ParseParts(absl::string_view payload, size_t count) {
  WireReader reader(payload);
  if (reader.U32() != count) return absl::InternalError("rank 0 sent parts of another world size");
  std::vector<std::string> parts(count);
  for (std::string& part : parts) part = reader.String(kBlobLimit);
  if (!reader.Complete()) return absl::InternalError("rank 0 sent malformed parts");
  return parts;
}

// Why one attempt to join did not succeed, and whether another may.
struct Attempt {
  absl::Status status;
  bool final = false;
};

}  // namespace

std::string DescribeRank(int rank, absl::string_view name) {
  if (name.empty()) return absl::StrCat("rank ", rank);
  return absl::StrCat("rank ", rank, " (", name, ")");
}

std::string EncodeFailure(const absl::Status& status) {
  WireWriter writer;
  writer.U32(static_cast<uint32_t>(status.code()));
  writer.String(status.message().substr(0, kFailureLimit));
  return writer.Take();
}

absl::Status ParseFailure(absl::string_view payload) {
  WireReader reader(payload);
  const auto code = static_cast<absl::StatusCode>(reader.U32());
  const std::string text = reader.String(kFailureLimit);
  if (!reader.Complete() || code == absl::StatusCode::kOk ||
      code > absl::StatusCode::kUnauthenticated) {
    return absl::InternalError("a malformed notice of failure");
  }
  return absl::Status(code, text);
}

std::string Bootstrap::Describe(int rank) const {
  return DescribeRank(rank, names_[static_cast<size_t>(rank)]);
}

absl::StatusOr<Bootstrap> Bootstrap::Join(JoinOptions options) {
  Bootstrap result;
  result.rank_ = options.rank;
  result.names_.resize(static_cast<size_t>(options.world_size));
  if (options.world_size == 1) {
    result.names_[0] = options.name;
    return result;
  }
  absl::Status joined = options.rank == 0 ? result.HostJoin(options) : result.GuestJoin(options);
  if (!joined.ok()) return joined;
  return result;
}

absl::Status Bootstrap::HostJoin(JoinOptions& options) {
  net::Fd listener;
  if (options.listener.has_value()) {
    listener = *std::move(options.listener);
  } else {
    absl::StatusOr<net::Fd> opened = net::Listen(std::nullopt, static_cast<uint16_t>(options.port));
    if (!opened.ok()) {
      return absl::Status(
          opened.status().code(),
          absl::StrCat(DescribeRank(0, options.name), " cannot wait at MASTER_PORT ", options.port,
                       ": ", opened.status().message(), "; choose a free port on all ranks"));
    }
    listener = *std::move(opened);
  }
  Reception reception(std::move(listener), options.world_size, options.job, options.log);
  const absl::Status gathered = reception.Gather(options.deadline);
  names_ = reception.TakeNames();
  names_[0] = options.name;
  members_ = reception.TakeMembers();
  rejected_ = reception.rejected();
  if (!gathered.ok()) {
    return HostFail(
        absl::Status(gathered.code(), absl::StrCat(Describe(0), " ", gathered.message())));
  }
  for (Member& member : members_) {
    member.reader.set_limit(kBlobLimit);
    absl::Status sent = net::SendAll(
        member.fd.get(), EncodeFrame(FrameKind::kWelcome, EncodeParts(names_)), options.deadline);
    if (!sent.ok()) {
      return HostFail(absl::UnavailableError(
          absl::StrCat(Describe(member.rank), " was lost at the rendezvous: ", sent.message())));
    }
  }
  const absl::StatusOr<net::SocketAddress> local = net::LocalAddress(members_.front().fd.get());
  if (local.ok()) local_address_ = local->address;
  return absl::OkStatus();
}

absl::Status Bootstrap::GuestJoin(const JoinOptions& options) {
  const Hello hello{kProtocolVersion, static_cast<uint32_t>(options.world_size),
                    static_cast<uint32_t>(options.rank), options.job, options.name};
  const std::string introduction = EncodeFrame(FrameKind::kHello, EncodeHello(hello));
  const std::string where = absl::StrCat(options.host, ":", options.port);

  // One attempt: dial, introduce, and wait for the welcome as long as the connection holds.
  const auto attempt = [&]() -> Attempt {
    const absl::StatusOr<std::vector<net::IpAddress>> addresses =
        net::Resolve(options.host, options.deadline);
    if (!addresses.ok()) return {addresses.status()};
    absl::StatusOr<net::Fd> fd = absl::UnavailableError("no address");
    for (const net::IpAddress& address : *addresses) {
      fd = net::Dial(address, static_cast<uint16_t>(options.port), std::nullopt,
                     std::min(options.deadline, absl::Now() + kOneDial));
      if (fd.ok()) break;
    }
    if (!fd.ok()) return {fd.status()};
    // The welcome holds the names of all ranks.
    const size_t welcome_limit = kHelloLimit * (static_cast<size_t>(options.world_size) + 1);
    Member member{0, *std::move(fd), FrameReader(welcome_limit)};
    if (absl::Status sent = net::SendAll(member.fd.get(), introduction, options.deadline);
        !sent.ok()) {
      return {sent};
    }
    absl::StatusOr<Frame> frame = ReadFrame(member, options.deadline + kVerdictGrace);
    if (!frame.ok()) {
      if (absl::IsDeadlineExceeded(frame.status())) {
        return {absl::DeadlineExceededError("connected, but rank 0 never said that all had come"),
                true};
      }
      return {frame.status()};
    }
    switch (frame->kind) {
      case FrameKind::kWelcome: {
        absl::StatusOr<std::vector<std::string>> names = ParseParts(frame->payload, names_.size());
        if (!names.ok()) return {names.status()};
        names_ = *std::move(names);
        const absl::StatusOr<net::SocketAddress> local = net::LocalAddress(member.fd.get());
        if (local.ok()) local_address_ = local->address;
        member.reader.set_limit((kBlobLimit + 4) * names_.size() + 4);
        members_.push_back(std::move(member));
        return {absl::OkStatus(), true};
      }
      case FrameKind::kRefuse: {
        const absl::StatusOr<Refusal> refusal = ParseRefusal(frame->payload);
        if (!refusal.ok()) return {refusal.status()};
        return {absl::FailedPreconditionError(
                    absl::StrCat("rank 0 turned this rank away: ", refusal->text)),
                refusal->final};
      }
      case FrameKind::kFail:
        return {ParseFailure(frame->payload), true};
      default:
        return {absl::InternalError("rank 0 answered with an unexpected frame")};
    }
  };

  const absl::Time start = absl::Now();
  absl::Time next_word = start + kQuiet;
  absl::Duration pause = kFirstRetry;
  while (true) {
    const Attempt result = attempt();
    if (result.status.ok()) return absl::OkStatus();
    const absl::Time now = absl::Now();
    if (result.final || now + pause >= options.deadline) {
      return absl::Status(
          result.status.code(),
          absl::StrCat(DescribeRank(options.rank, options.name),
                       " did not get into the rendezvous at ", where, " after ",
                       absl::FormatDuration(absl::Trunc(now - start, absl::Milliseconds(100))),
                       ": ", result.status.message()));
    }
    if (now >= next_word) {
      options.log.Warn(absl::StrCat(
          "still trying to reach rank 0 at ", where, " (",
          absl::FormatDuration(absl::Trunc(now - start, absl::Seconds(1))), " of ",
          absl::FormatDuration(absl::Trunc(options.deadline - start, absl::Seconds(1))),
          "): ", result.status.message()));
      next_word = now + 3 * kQuiet;
    }
    absl::SleepFor(pause);
    pause = std::min(pause * 2, kLastRetry);
  }
}

absl::StatusOr<std::vector<std::string>> Bootstrap::Exchange(absl::StatusOr<std::string> mine,
                                                             absl::Time deadline) {
  if (mine.ok() && mine->size() > kBlobLimit) {
    mine = absl::InternalError(absl::StrCat(Describe(rank_), " has ", mine->size(),
                                            " bytes for an exchange that takes ", kBlobLimit));
  }
  if (world_size() == 1) {
    if (!mine.ok()) return mine.status();
    return std::vector<std::string>{*std::move(mine)};
  }
  return rank_ == 0 ? HostExchange(std::move(mine), deadline)
                    : GuestExchange(std::move(mine), deadline);
}

absl::StatusOr<std::vector<std::string>> Bootstrap::HostExchange(absl::StatusOr<std::string> mine,
                                                                 absl::Time deadline) {
  if (!mine.ok()) return HostFail(mine.status());
  std::vector<std::string> parts(names_.size());
  parts[0] = *std::move(mine);
  std::vector<Member*> awaited;
  awaited.reserve(members_.size());
  for (Member& member : members_) awaited.push_back(&member);
  while (!awaited.empty()) {
    std::vector<pollfd> entries;
    entries.reserve(awaited.size());
    for (const Member* member : awaited) entries.push_back({member->fd.get(), POLLIN, 0});
    ::poll(entries.data(), entries.size(), net::PollTimeout(deadline));
    std::vector<Member*> still;
    for (size_t i = 0; i < awaited.size(); ++i) {
      Member& member = *awaited[i];
      if (entries[i].revents == 0) {
        still.push_back(&member);
        continue;
      }
      const absl::StatusOr<bool> open =
          net::ReceiveSome(member.fd.get(), kBlobLimit, member.reader.buffer());
      absl::StatusOr<std::optional<Frame>> frame = member.reader.Next();
      if (!frame.ok()) {
        return HostFail(absl::InternalError(
            absl::StrCat(Describe(member.rank), " sent nonsense: ", frame.status().message())));
      }
      if (!frame->has_value()) {
        if (open.ok() && *open) {
          still.push_back(&member);
          continue;
        }
        return HostFail(absl::UnavailableError(absl::StrCat(
            Describe(member.rank),
            " is gone: ", open.ok() ? "it closed its connection" : open.status().message())));
      }
      if ((*frame)->kind == FrameKind::kFail) return HostFail(ParseFailure((*frame)->payload));
      if ((*frame)->kind != FrameKind::kBlob) {
        return HostFail(absl::InternalError(
            absl::StrCat(Describe(member.rank), " sent an unexpected kind of frame")));
      }
      parts[static_cast<size_t>(member.rank)] = std::move((*frame)->payload);
    }
    awaited = std::move(still);
    if (!awaited.empty() && absl::Now() >= deadline) {
      return HostFail(absl::DeadlineExceededError(
          absl::StrCat(absl::StrJoin(awaited, ", ",
                                     [this](std::string* out, const Member* member) {
                                       absl::StrAppend(out, Describe(member->rank));
                                     }),
                       " did not answer in time while the job was set up")));
    }
  }
  const std::string all = EncodeFrame(FrameKind::kAll, EncodeParts(parts));
  for (Member& member : members_) {
    if (absl::Status sent = net::SendAll(member.fd.get(), all, deadline + kVerdictGrace);
        !sent.ok()) {
      return HostFail(absl::UnavailableError(
          absl::StrCat(Describe(member.rank), " is gone: ", sent.message())));
    }
  }
  return parts;
}

absl::Status Bootstrap::HostFail(const absl::Status& verdict) {
  const std::string notice = EncodeFrame(FrameKind::kFail, EncodeFailure(verdict));
  const absl::Time deadline = absl::Now() + kFarewell;
  for (const Member& member : members_) {
    // Who is gone cannot be told; the verdict matters to the rest.
    net::SendAll(member.fd.get(), notice, deadline).IgnoreError();
    ::shutdown(member.fd.get(), SHUT_WR);
  }
  // Closing a socket with unread bytes resets it, and a reset may overtake the notice: so read
  // until the others, who have read the notice, close.
  for (const Member& member : members_) {
    std::string ignored;
    while (net::WaitReadable(member.fd.get(), deadline).ok()) {
      const absl::StatusOr<bool> open = net::ReceiveSome(member.fd.get(), kBlobLimit, &ignored);
      if (!open.ok() || !*open) break;
      ignored.clear();
    }
  }
  members_.clear();
  return verdict;
}

absl::StatusOr<std::vector<std::string>> Bootstrap::GuestExchange(absl::StatusOr<std::string> mine,
                                                                  absl::Time deadline) {
  Member& host = members_.front();
  const std::string frame = mine.ok() ? EncodeFrame(FrameKind::kBlob, *mine)
                                      : EncodeFrame(FrameKind::kFail, EncodeFailure(mine.status()));
  // A send that fails is not the end yet: rank 0 may have said why before it closed.
  const absl::Status sent = net::SendAll(host.fd.get(), frame, deadline);
  const absl::StatusOr<Frame> answer = ReadFrame(host, deadline + kVerdictGrace);
  if (answer.ok() && answer->kind == FrameKind::kAll) {
    return ParseParts(answer->payload, names_.size());
  }
  if (answer.ok() && answer->kind == FrameKind::kFail) return ParseFailure(answer->payload);
  if (!mine.ok()) return mine.status();
  if (answer.ok()) return absl::InternalError("rank 0 answered with an unexpected frame");
  return absl::Status(
      answer.status().code(),
      absl::StrCat(Describe(rank_), " lost ", Describe(0), " while the job was set up: ",
                   sent.ok() ? answer.status().message() : sent.message()));
}

}  // namespace railhead::bootstrap
