// SPDX-License-Identifier: Apache-2.0
#include "runtime/bootstrap/bootstrap.h"

#include <poll.h>

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/printable_text.h"
#include "runtime/base/now.h"
#include "runtime/bootstrap/master_address.h"
#include "runtime/bootstrap/messages.h"
#include "runtime/bootstrap/rendezvous_server.h"
#include "runtime/bootstrap/spread.h"
#include "runtime/bootstrap/tree.h"
#include "runtime/net/socket.h"

namespace railhead::bootstrap {
namespace {

// Rank 0 judges at the deadline; the others give its verdict this long to arrive.
constexpr absl::Duration kVerdictGrace = absl::Seconds(5);
// Maximum time that an aborted rank waits for rank 0's verdict.
constexpr absl::Duration kVerdictPatience = absl::Seconds(1);
// Maximum time that rank 0 waits for answers of missing ranks: on a busy machine a rank may not run
// for a second, and the others wait longer for the verdict.
constexpr absl::Duration kAnswerPatience = absl::Seconds(3);
static_assert(kAnswerPatience < kVerdictGrace);
// Maximum time that a failing rank waits until the others have read the cause.
constexpr absl::Duration kFarewell = absl::Seconds(1);
// Minimum time to build the tree, however late the last rank arrives.
constexpr absl::Duration kGrowth = absl::Seconds(10);

constexpr absl::Duration kFirstRetry = absl::Milliseconds(5);
constexpr absl::Duration kLastRetry = absl::Seconds(1);
// Until a rendezvous opens, whose process is there.
constexpr absl::Duration kNotOpenRetry = absl::Milliseconds(100);
constexpr absl::Duration kQuiet = absl::Seconds(3);
// Maximum time in which a rank that cannot take part reports its error.
constexpr absl::Duration kTelling = absl::Seconds(5);
// Maximum time in which a second rank 0 reports itself to the first.
constexpr absl::Duration kTellOther = absl::Seconds(2);

std::string Seconds(absl::Duration duration, absl::Duration unit) {
  return absl::FormatDuration(absl::Trunc(duration, unit));
}

// The largest frame that a world of this size needs.
size_t FrameLimit(int world_size) {
  constexpr size_t kHead = 64;
  return kHead + std::min(kAllLimit, static_cast<size_t>(world_size) * (kPartLimit + 4));
}

// Returns the introduction to rank 0.
Hello HelloOf(const JoinOptions& options) {
  Hello hello;
  hello.world_size = static_cast<uint32_t>(options.world_size);
  hello.rank = static_cast<uint32_t>(options.rank);
  hello.has_secret = options.secret.has_file();
  hello.job = options.job;
  hello.name = options.name;
  hello.launch = options.launch;
  hello.starter = options.starter;
  return hello;
}

}  // namespace

absl::StatusOr<Bootstrap> Bootstrap::Join(JoinOptions options) {
  Bootstrap result(options.rank, options.world_size);
  result.node_.SetName(options.rank, options.name);
  result.aborted_ = options.aborted;
  if (options.place == nullptr) {
    options.place = std::make_shared<MasterAddress>(options.host, options.port);
  }
  if (!options.trouble.ok()) {
    if (options.world_size > 1) result.TellTrouble(options);
    return absl::Status(options.trouble.code(), absl::StrCat(result.Describe(options.rank), ": ",
                                                             options.trouble.message()));
  }
  if (options.world_size == 1) return result;
  absl::Status joined = options.rank == 0 ? result.HostJoin(options) : result.GuestJoin(options);
  if (!joined.ok()) return joined;
  return result;
}

void Bootstrap::Attach(int rank, const std::string& name, net::Fd fd, FrameReader reader) {
  reader.set_limit(FrameLimit(world_size()));
  links_.Add(rank, std::move(fd), std::move(reader));
  node_.SetName(rank, name);
}

void Bootstrap::TellTrouble(JoinOptions& options) {
  options.log.Write(LogLevel::kError, options.trouble.message());
  const absl::Time start = MonotonicNow();
  options.deadline = std::min(options.deadline, start + kTelling);
  if (options.rank == 0) {
    absl::StatusOr<ListeningSocket> listener = ListenFor(options);
    if (!listener.ok()) return;
    RendezvousServer rendezvous(
        *std::move(listener), options.world_size,
        {0, options.job, options.name, std::string(options.trouble.message()), options.launch,
         options.starter},
        options.secret, Logger(LogLevel::kError, ""), options.place->SameOnAllRanks());
    const size_t others = static_cast<size_t>(options.world_size) - 1;
    const Halt all_told = [&rendezvous, others, &options] {
      return rendezvous.told() < others ? CheckHalt(options.aborted)
                                        : absl::CancelledError("all know");
    };
    rendezvous.Gather(options.deadline, all_told).IgnoreError();
    return;
  }
  std::string welcome;
  // A refusal shows that rank 0 has received the report.
  while (!absl::IsFailedPrecondition(TryToArrive(options, 0, &welcome).status) &&
         MonotonicNow() < options.deadline && CheckHalt(options.aborted).ok()) {
    SleepUntil(MonotonicNow() + Spread(kFirstRetry * 20), options.hopeless).IgnoreError();
  }
}

// ---- Rank 0 ----

absl::StatusOr<ListeningSocket> Bootstrap::ListenFor(JoinOptions& options) {
  if (options.shared_listener != nullptr) {
    return ListeningSocket{net::Fd(), options.shared_listener};
  }
  if (options.listener.has_value()) return ListeningSocket{*std::move(options.listener)};
  absl::StatusOr<net::Fd> opened = options.place->Open(options.deadline, options.hopeless);
  if (opened.ok()) return ListeningSocket{*std::move(opened)};
  std::string text = absl::StrCat(Describe(0), " ", opened.status().message());
  if (absl::IsAlreadyExists(opened.status())) {
    const std::string answer = TellOtherRankZero(options);
    if (!answer.empty()) absl::StrAppend(&text, "; ", answer);
  }
  return absl::Status(opened.status().code(), text);
}

std::string Bootstrap::TellOtherRankZero(const JoinOptions& options) {
  const absl::Time deadline = std::min(options.deadline, MonotonicNow() + kTellOther);
  absl::StatusOr<net::Fd> fd = options.place->Dial(deadline, options.hopeless);
  if (!fd.ok()) return "";
  const auto wait = [&options](int socket, absl::Time until) {
    return net::WaitReadable(socket, until, options.hopeless);
  };
  Call call = ShakeHands(*std::move(fd), HelloOf(options), options.secret, deadline, wait);
  if (!call.status.ok()) {
    return absl::IsFailedPrecondition(call.status) ? std::string(call.status.message()) : "";
  }
  const absl::StatusOr<Frame> frame = ReadFrame(call, deadline, wait);
  if (!frame.ok() || frame->kind != FrameKind::kRefuse) return "";
  const absl::StatusOr<Refusal> refusal = ParseRefusal(frame->payload);
  return refusal.ok() ? absl::StrCat("it answers: ", refusal->text) : "";
}

absl::Status Bootstrap::HostJoin(JoinOptions& options) {
  absl::StatusOr<ListeningSocket> listener = ListenFor(options);
  if (!listener.ok()) return listener.status();
  const int world = options.world_size;
  RendezvousServer rendezvous(*std::move(listener), world,
                              {0, options.job, options.name, "", options.launch, options.starter},
                              options.secret, options.log, options.place->SameOnAllRanks());
  const absl::Status gathered = rendezvous.Gather(options.deadline, options.hopeless);
  rejected_ = rendezvous.rejected();
  std::map<int, std::optional<net::SocketAddress>> addresses;
  for (auto& [number, guest] : rendezvous.TakeGuests()) {
    const int rank = static_cast<int>(number);
    if (addresses.empty()) {
      const absl::StatusOr<net::SocketAddress> local = net::LocalAddress(guest.fd.get());
      if (local.ok()) local_address_ = local->address;
    }
    addresses[rank] = guest.hello.listens_at;
    Attach(rank, guest.hello.name, std::move(guest.fd), std::move(guest.reader));
    node_.AttachDown(rank);
  }
  absl::StatusOr<std::string> session = RandomBytes(kNonceSize);
  if (!gathered.ok() || !session.ok()) {
    const absl::Status& cause = gathered.ok() ? session.status() : gathered;
    node_.Report(absl::Status(cause.code(), absl::StrCat(Describe(0), " ", cause.message())));
    return Fail();
  }
  session_ = options.secret.ForSession(*session);
  const auto address_of = [&addresses](std::optional<int> rank) {
    return rank.has_value() && *rank != 0 ? addresses[*rank] : std::nullopt;
  };
  for (int rank = 1; rank < world; ++rank) {
    links_.Queue(rank, FrameKind::kWelcome,
                 EncodeWelcome({*session, address_of(Parent(rank)), address_of(Guardian(rank))}));
  }
  absl::Status stands = TryTree(std::max(options.deadline, MonotonicNow() + kGrowth), nullptr);
  if (!stands.ok()) return stands;

  // From here on only the tree is used.
  for (int rank = 1; rank < world; ++rank) {
    if (Parent(rank) == 0 || Guardian(rank) == 0) continue;
    node_.Detach(rank);
    links_.Queue(rank, FrameKind::kBye, "");
  }
  links_.Flush(node_, MonotonicNow() + kFarewell);
  for (int rank = 1; rank < world; ++rank) {
    if (Parent(rank) != 0 && Guardian(rank) != 0) links_.Remove(rank);
  }
  return absl::OkStatus();
}

// ---- All others ----

absl::Status Bootstrap::GuestJoin(const JoinOptions& options) {
  // A rank with children listens for them.
  const std::vector<int> children = Children(options.rank, options.world_size);
  const std::vector<int> grandchildren = Grandchildren(options.rank, options.world_size);
  net::Fd listener;
  uint16_t port = 0;
  if (!children.empty()) {
    absl::StatusOr<net::Fd> opened = net::Listen(std::nullopt, 0);
    const absl::StatusOr<net::SocketAddress> bound =
        opened.ok() ? net::LocalAddress(opened->get()) : opened.status();
    if (!bound.ok()) {
      return absl::Status(bound.status().code(),
                          absl::StrCat(Describe(options.rank), " cannot listen for its children: ",
                                       bound.status().message()));
    }
    listener = *std::move(opened);
    port = bound->port;
  }

  std::string payload;
  absl::StatusOr<Call> call = Arrive(options, port, &payload);
  if (!call.ok()) return call.status();
  Attach(0, call->host_name, std::move(call->fd), std::move(call->reader));
  node_.AttachUp(0);

  const absl::Time deadline = std::max(options.deadline, MonotonicNow() + kGrowth);
  const absl::StatusOr<Welcome> welcome = ParseWelcome(payload);
  if (!welcome.ok()) return welcome.status();
  // A key per session, so that knowledge from an earlier one is of no use.
  session_ = options.secret.ForSession(welcome->session);
  const Hello hello{kProtocolVersion,
                    static_cast<uint32_t>(options.world_size),
                    static_cast<uint32_t>(options.rank),
                    0,
                    session_.has_file(),
                    options.job,
                    options.name,
                    "",
                    std::nullopt};
  absl::Status up;
  if (Guardian(options.rank).value_or(0) != 0) {
    up = ConnectUp(*Guardian(options.rank), welcome->guardian, hello, session_, deadline);
  }
  if (up.ok() && Parent(options.rank) != 0) {
    up = ConnectUp(*Parent(options.rank), welcome->parent, hello, session_, deadline);
  }
  if (!up.ok()) node_.Report(up);

  std::unique_ptr<HandshakeServer> server;
  if (listener.valid()) {
    const auto object = [&](const Hello& guest) -> std::optional<Refusal> {
      const auto is_guest = [&guest](int rank) {
        return guest.rank == static_cast<uint32_t>(rank);
      };
      if (std::any_of(children.begin(), children.end(), is_guest) ||
          std::any_of(grandchildren.begin(), grandchildren.end(), is_guest)) {
        return std::nullopt;
      }
      return Refusal{true, absl::StrCat("rank ", guest.rank,
                                        " is not a child or grandchild of rank ", options.rank)};
    };
    server = std::make_unique<HandshakeServer>(
        ListeningSocket{std::move(listener)},
        HostHandshake::Identity{options.rank, options.job, options.name}, session_,
        children.size() + grandchildren.size(), object, options.log);
  }
  absl::Status stands = TryTree(deadline, server.get());
  if (!stands.ok()) return stands;
  if (server != nullptr) rejected_ = server->rejected();
  if (Parent(options.rank) != 0 && Guardian(options.rank) != 0) {
    node_.Detach(0);
    links_.Remove(0);
  }
  return absl::OkStatus();
}

absl::StatusOr<Call> Bootstrap::Arrive(const JoinOptions& options, uint16_t listen_port,
                                       std::string* welcome) {
  const std::string where = options.place->Where();
  const absl::Time start = MonotonicNow();
  absl::Time next_word = start + kQuiet;
  absl::Duration pause = kFirstRetry;
  absl::Status refusal;  // the last; kept, because a later error may only be that rank 0 is gone
  while (true) {
    Call call = TryToArrive(options, listen_port, welcome);
    if (call.status.ok()) return call;
    if (absl::Status halted = CheckHalt(options.hopeless); !halted.ok()) {
      call.status = std::move(halted);
      call.final = true;
    }
    if (absl::IsFailedPrecondition(call.status)) {
      if (!call.final && call.status != refusal) {
        options.log.Warn(absl::StrCat(call.status.message(), "; retrying"));
      }
      refusal = call.status;
    } else if (!call.final && !refusal.ok()) {
      call.status = absl::Status(
          call.status.code(), absl::StrCat(call.status.message(), "; before, ", refusal.message()));
    }
    const absl::Time now = MonotonicNow();
    const absl::Duration wait = call.not_open ? kNotOpenRetry : pause;
    if (call.final || now + wait >= options.deadline) {
      return absl::Status(
          call.status.code(),
          absl::StrCat(Describe(options.rank), " could not join the rendezvous at ", where,
                       " after ", Seconds(now - start, absl::Milliseconds(100)), ": ",
                       call.status.message()));
    }
    if (now >= next_word) {
      options.log.Warn(absl::StrCat("still trying to reach rank 0 at ", where, " (",
                                    Seconds(now - start, absl::Seconds(1)), " of ",
                                    Seconds(options.deadline - start, absl::Seconds(1)),
                                    "): ", call.status.message()));
      next_word = now + 3 * kQuiet;
    }
    // If `hopeless` ends the sleep, it is checked after one more attempt.
    SleepUntil(now + Spread(wait), options.hopeless).IgnoreError();
    if (!call.not_open) pause = std::min(pause * 2, kLastRetry);
  }
}

Call Bootstrap::TryToArrive(const JoinOptions& options, uint16_t listen_port,
                            std::string* welcome) {
  Call call;
  absl::StatusOr<net::Fd> fd = options.place->Dial(options.deadline, options.hopeless);
  const absl::StatusOr<net::SocketAddress> local =
      fd.ok() ? net::LocalAddress(fd->get()) : fd.status();
  if (!local.ok()) {
    call.status = local.status();
    call.final = absl::IsUnimplemented(local.status());
    return call;
  }
  local_address_ = local->address;
  Hello hello = HelloOf(options);
  hello.trouble = std::string(options.trouble.message());
  if (listen_port != 0) hello.listens_at = net::SocketAddress{local->address, listen_port};
  const absl::Time deadline = options.deadline + kVerdictGrace;
  const auto wait = [&options](int socket, absl::Time until) {
    return net::WaitReadable(socket, until, options.hopeless);
  };
  call = ShakeHands(*std::move(fd), std::move(hello), options.secret, deadline, wait);
  absl::StatusOr<Frame> frame = call.status.ok() ? ReadFrame(call, deadline, wait) : call.status;
  while (frame.ok() && frame->kind == FrameKind::kNotice) {
    options.log.Warn(absl::StrCat("rank 0 rejected a rank: ", PrintableText(frame->payload),
                                  "; waiting for it"));
    frame = ReadFrame(call, deadline, wait);
  }
  call.status = frame.status();
  if (absl::IsDeadlineExceeded(call.status)) {
    call.status = absl::DeadlineExceededError(
        "connected, but rank 0 never reported that all ranks had arrived");
    call.final = true;
  }
  if (!frame.ok()) return call;
  switch (frame->kind) {
    case FrameKind::kWelcome:
      *welcome = std::move(frame->payload);
      break;
    case FrameKind::kRefuse: {
      // After the handshake: rank 0 knows what it does.
      const absl::StatusOr<Refusal> refusal = ParseRefusal(frame->payload);
      call.status = refusal.ok() ? absl::FailedPreconditionError(
                                       absl::StrCat("rank 0 rejected this rank: ", refusal->text))
                                 : refusal.status();
      call.final = refusal.ok() && refusal->final;
      break;
    }
    case FrameKind::kFail:
      call.status = ParseFailure(frame->payload);
      call.final = true;
      break;
    default:
      call.status = absl::InternalError("rank 0 answered with an unexpected frame");
  }
  return call;
}

absl::Status Bootstrap::ConnectUp(int to, const std::optional<net::SocketAddress>& place,
                                  const Hello& hello, const Secret& secret, absl::Time deadline) {
  if (!place.has_value()) {
    return absl::InternalError(absl::StrCat("rank 0 did not send the address of rank ", to));
  }
  // Rank 0 may report the failure of the job during this wait.
  const auto wait = [this](int fd, absl::Time until) {
    while (node_.verdict().ok()) {
      std::vector<pollfd> others;
      if (fd >= 0) others.push_back({fd, POLLIN, 0});
      links_.Turn(node_, others, NextCheck(aborted_, until));
      if (fd >= 0 && others[0].revents != 0) return absl::OkStatus();
      if (absl::Status aborted = CheckHalt(aborted_); !aborted.ok()) return aborted;
      if (MonotonicNow() >= until) return absl::DeadlineExceededError("it does not answer");
    }
    return absl::CancelledError("the job has failed");
  };
  absl::Duration pause = kFirstRetry;
  while (true) {
    absl::StatusOr<net::Fd> fd = net::Dial(place->address, place->port, std::nullopt,
                                           std::min(deadline, MonotonicNow() + kOneDial), aborted_);
    Call call;
    call.status = fd.status();
    if (fd.ok()) {
      Hello mine = hello;
      mine.host_rank = static_cast<uint32_t>(to);
      call = ShakeHands(*std::move(fd), std::move(mine), secret, deadline, wait);
    }
    if (call.status.ok()) {
      Attach(to, call.host_name, std::move(call.fd), std::move(call.reader));
      node_.AttachUp(to);
      return absl::OkStatus();
    }
    if (call.final || !node_.verdict().ok() || !CheckHalt(aborted_).ok() ||
        MonotonicNow() + pause >= deadline) {
      return absl::Status(
          call.status.code(),
          absl::StrCat(Describe(rank()), " cannot reach rank ", to, " at ",
                       net::HostPort(place->address, place->port), ": ", call.status.message(),
                       "; check whether a NetworkPolicy separates the job's pods"));
    }
    wait(-1, MonotonicNow() + Spread(pause)).IgnoreError();
    pause = std::min(pause * 2, kLastRetry);
  }
}

// ---- All ranks ----

absl::Status Bootstrap::TryTree(absl::Time deadline, HandshakeServer* server) {
  const auto nothing = [](const std::vector<std::string>& /*parts*/) {
    return absl::StatusOr<Node::Answer>(Node::Answer());
  };
  return Agree(std::string(), nothing, deadline, server).status();
}

absl::StatusOr<std::vector<std::string>> Bootstrap::Exchange(absl::StatusOr<std::string> mine,
                                                             absl::Time deadline) {
  const auto all = [](std::vector<std::string> parts) -> absl::StatusOr<Node::Answer> {
    return Node::Answer{EncodeParts({0, std::move(parts)}), {}};
  };
  const absl::StatusOr<Node::Result> result = Agree(std::move(mine), all, deadline);
  if (!result.ok()) return result.status();
  absl::StatusOr<Parts> parts = ParseParts(result->for_all, static_cast<size_t>(world_size()));
  if (!parts.ok()) return parts.status();
  return std::move(parts->parts);
}

absl::StatusOr<Node::Result> Bootstrap::Agree(absl::StatusOr<std::string> mine, Node::Decide decide,
                                              absl::Time deadline, HandshakeServer* server) {
  if (mine.ok() && mine->size() > kPartLimit) {
    mine = absl::InternalError(absl::StrCat(Describe(rank()), " has ", mine->size(),
                                            " bytes for an exchange that takes ", kPartLimit));
  }
  if (world_size() == 1) {
    if (!mine.ok()) return mine.status();
    absl::StatusOr<Node::Answer> answer = decide({*std::move(mine)});
    if (!answer.ok()) return answer.status();
    return Node::Result{std::move(answer->for_all),
                        answer->for_each.empty() ? "" : std::move(answer->for_each.front())};
  }
  node_.Give(std::move(mine), std::move(decide));
  bool asked = false;
  absl::Time patience = rank() == 0 ? deadline : deadline + kVerdictGrace;
  while (true) {
    // An exchange that is through is a success, even when the job has failed right after it.
    if (std::optional<Node::Result> result = node_.TakeResult(); result.has_value()) {
      links_.Flush(node_, deadline + kVerdictGrace);
      return *std::move(result);
    }
    if (!node_.verdict().ok()) return Fail();
    if (const absl::Status aborted = CheckHalt(aborted_); !aborted.ok() && node_.reported().ok()) {
      node_.Report(aborted);
      patience = MonotonicNow() + kVerdictPatience;
      continue;
    }
    if (MonotonicNow() >= patience) {
      if (rank() != 0) {
        node_.StopWaiting(absl::DeadlineExceededError(
            absl::StrCat(Describe(rank()), " timed out waiting for ", Describe(*Parent(rank())),
                         " while the job was set up")));
      } else if (asked) {
        node_.JudgeMissing();
      } else {
        node_.AskWhoIsMissing();
        asked = true;
        patience = MonotonicNow() + kAnswerPatience;
      }
      continue;
    }
    std::vector<pollfd> others;
    absl::Time until = NextCheck(aborted_, patience);
    if (server != nullptr) server->Prepare(others, until);
    links_.Turn(node_, others, until);
    if (server == nullptr) continue;
    for (HandshakeServer::Guest& guest : server->Serve(others.data())) {
      const int guest_rank = static_cast<int>(guest.hello.rank);
      Attach(guest_rank, guest.hello.name, std::move(guest.fd), std::move(guest.reader));
      node_.AttachDown(guest_rank);
    }
  }
}

absl::Status Bootstrap::Fail() {
  links_.Farewell(node_, MonotonicNow() + kFarewell);
  return node_.verdict();
}

}  // namespace railhead::bootstrap
