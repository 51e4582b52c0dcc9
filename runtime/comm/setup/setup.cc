// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/setup/setup.h"

#include <algorithm>
#include <cerrno>
#include <set>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/descriptors.h"
#include "runtime/base/now.h"
#include "runtime/base/random.h"
#include "runtime/base/round_up.h"
#include "runtime/bootstrap/messages.h"
#include "runtime/bootstrap/secret.h"
#include "runtime/comm/hierarchy/hierarchy.h"
#include "runtime/comm/setup/agreement.h"
#include "runtime/comm/setup/chosen_rail.h"
#include "runtime/comm/setup/connect.h"
#include "runtime/comm/setup/neighbours.h"
#include "runtime/comm/setup/own_rails.h"
#include "runtime/comm/setup/protection_check.h"
#include "runtime/comm/setup/reach.h"
#include "runtime/comm/setup/start_warnings.h"
#include "runtime/comm/setup/tcp_rail.h"
#include "runtime/net/address.h"
#include "runtime/net/socket.h"
#include "runtime/preflight/local.h"
#include "runtime/shm/group.h"
#include "runtime/shm/mailbox.h"
#include "runtime/shm/segment_server.h"
#include "runtime/transport/tcp/tcp.h"

namespace railhead::comm {
namespace {

using transport::Link;

constexpr size_t kKeyBytes = 16;
// Time after which an RDMA rail without an answer from the peer counts as broken, so that TCP can
// be tried. It is long enough, since all ranks connect at the same moment, and short enough for a
// job that requires RDMA to fail soon.
constexpr absl::Duration kLongestRdmaConnect = absl::Seconds(6);

// Maximum wait of a start for late rails, once there is one to each peer. They are used when they
// connect (rails/peer.h).
constexpr absl::Duration kGrace = absl::Seconds(1);

// Returns the number of descriptors that the connections to one other rank need.
size_t Descriptors(const std::vector<ChosenRail>& rails) {
  size_t sum = 0;
  // TCP: a socket; verbs: the device's events and the channel of completions.
  for (const ChosenRail& rail : rails) sum += rail.device != nullptr ? 2 : 1;
  return sum;
}

// Returns true if the links of one decision serve the other.
bool SameLinks(const Decision& a, const Decision& b) {
  return a.shm == b.shm && a.verbs == b.verbs && a.rails == b.rails &&
         a.protection == b.protection && a.places == b.places;
}

// Returns those that cannot be opened now, as bits.
uint64_t Closed(const std::vector<ChosenRail>& rails) {
  uint64_t closed = 0;
  for (size_t k = 0; k < rails.size(); ++k) {
    closed |= rails[k].trouble.empty() ? 0 : uint64_t{1} << k;
  }
  return closed;
}

// Returns a random key for ranks that meet again at a rejoin address of this job.
std::string NewKey() {
  const absl::StatusOr<std::string> random = RandomBytes(kKeyBytes);
  return random.ok() ? absl::BytesToHexString(*random) : "";
}

// Adds the rails of the decision.
void AddTo(Met& met, const Decision& decision) {
  met.tcp = met.tcp || !decision.verbs;
  std::set<int> rails(met.rails.begin(), met.rails.end());
  rails.insert(decision.rails.begin(), decision.rails.end());
  met.rails.assign(rails.begin(), rails.end());
}

// Returns the offset of the memory of transfers, which follows the memory of collectives.
size_t LaneOffset(bool memory_alone, int sharers) {
  constexpr size_t kPage = 4096;
  return RoundUp(memory_alone ? shm::Group::Bytes(sharers) + shm::Mailbox::Bytes(sharers)
                              : Hierarchy::Bytes(sharers),
                 kPage);
}

class Setup {
 public:
  Setup(bootstrap::Bootstrap& bootstrap, const SetupOptions& options, const Halt& aborted)
      : bootstrap_(bootstrap),
        options_(options),
        aborted_(aborted),
        self_(bootstrap.Describe(bootstrap.rank())),
        coordinator_(NewKey()) {}

  absl::StatusOr<Fabric> Run();

 private:
  using Links = std::vector<Connecting>;  // all rails of a neighbour, then the next one's

  // Returns an error if RAILHEAD_AUTH needs a secret and the job has none.
  absl::Status CheckSecret() const;
  void OpenRejoinListener();
  // Moves the result of the decision, and the facts and warnings about this rank's rails, to
  // `fabric`.
  void TakeStock(Fabric& fabric);
  // Returns the ranks to which this one connects now; to others at the first message.
  std::vector<int> FirstNeighbours(const Decision& decision) const;
  // Returns the ranks that share memory with this one.
  const std::vector<int>& Place(const Decision& decision) const;
  std::byte* LaneMemory(const Fabric& fabric) const;
  // Shares memory, in one round. Returns nullopt if it fails, so that all ranks decide again.
  absl::StatusOr<std::optional<shm::Segment>> ShareMemory();
  absl::Status OpenAcceptors(const std::vector<ChosenRail>& rails, Acceptors& acceptors) const;
  // Checks that there are descriptors and pinned memory for all connections, so that the error
  // comes at once and names the rank that lacks them.
  absl::Status TryNeeds(const std::vector<ChosenRail>& rails);
  // Sends changes to rank 0 and receives its decision. Returns whether the decision has changed.
  absl::StatusOr<bool> Agree(const absl::Status& problem, Statement statement, absl::Time deadline);
  // Fails the setup on all ranks because of rank 0's decision: every rank takes part in another
  // round after each decision. Returns the error, with this rank's name.
  absl::Status Refuse(const absl::Status& status, absl::Time deadline);
  // Returns the addresses of a rank that this one requested.
  Whereabouts Of(int rank) const;
  // Returns the maximum time for connecting.
  absl::Duration PatienceWith(const std::vector<ChosenRail>& rails) const;
  absl::Status Connect(const std::vector<ChosenRail>& rails, absl::Duration patience, Links& links);
  // Adds the number of descriptors that are needed to an error that there are too few.
  absl::Status WithNeeds(const absl::Status& status, const std::vector<ChosenRail>& rails) const;
  // Returns the report on an RDMA rail.
  RailReport& ReportOn(const ChosenRail& rail);
  // Records the state of the links to one neighbour. Returns an error if they cannot be used over
  // TCP; over RDMA all ranks decide again then.
  absl::Status Record(const std::vector<ChosenRail>& rails, const Whereabouts& peer,
                      absl::Span<const Connecting> links);

  // Returns the deadline of an exchange. A rank that completes a stage early waits for others,
  // which may take `others_may_take` for it, in addition to the timeout.
  absl::Time Deadline(absl::Duration others_may_take = absl::ZeroDuration()) const {
    return MonotonicNow() + options_.settings.StartTimeout() + others_may_take;
  }

  bootstrap::Bootstrap& bootstrap_;
  const SetupOptions& options_;
  const Halt& aborted_;
  std::string self_;
  std::vector<int> neighbours_;
  OwnRails own_;
  std::string told_;         // the report as last sent to rank 0
  Coordinator coordinator_;  // used by rank 0
  Agreement agreement_;
  Particulars particulars_;
  std::shared_ptr<RejoinListener> rejoin_listener_;
  std::vector<TcpRail> tcp_;
  Acceptors acceptors_;
  Acceptors lane_acceptors_;  // for transfers
};

absl::StatusOr<Fabric> Setup::Run() {
  own_ = OpenOwnRails(self_, options_);
  tcp_ = OwnTcpRails(options_.settings, bootstrap_.local_address(), options_.tcp);
  own_.report.tcp.clear();
  for (const TcpRail& rail : tcp_) {
    own_.report.tcp.push_back({rail.interface, rail.trouble, rail.unknown});
  }
  OpenRejoinListener();
  absl::Status problem = options_.problem;
  problem.Update(CheckSecret());
  if (!problem.ok()) {
    problem = absl::Status(problem.code(), absl::StrCat(self_, ": ", problem.message()));
  }
  absl::StatusOr<bool> changed = Agree(problem, {}, Deadline());
  std::optional<shm::Segment> segment;
  // The loop ends: every round but the last excludes RDMA, or shared memory.
  while (true) {
    if (!changed.ok()) return changed.status();
    const Decision decision = agreement_.decision;
    // Memory that is shared stays shared if a rail fails later.
    if (!decision.places.empty() && !segment.has_value()) {
      absl::StatusOr<std::optional<shm::Segment>> shared = ShareMemory();
      if (!shared.ok()) return shared.status();
      if (!shared->has_value()) continue;
      segment = *std::move(shared);
    }
    if (decision.shm) {
      Fabric fabric;
      fabric.rails.push_back({0, "memory", 0, "shm"});
      TakeStock(fabric);
      fabric.segment = std::move(segment);
      fabric.lane_memory = LaneMemory(fabric);
      return fabric;
    }
    const std::vector<ChosenRail> rails = ChooseRails(decision, own_, tcp_);
    const int world = bootstrap_.world_size();
    neighbours_ = FirstNeighbours(decision);
    absl::Status opened = OpenAcceptors(rails, acceptors_);
    opened.Update(OpenAcceptors(rails, lane_acceptors_));
    if (opened.ok()) opened = TryNeeds(rails);
    Statement statement;
    for (const Acceptors& acceptors : {acceptors_, lane_acceptors_}) {
      for (const auto& acceptor : acceptors) statement.addresses.push_back(acceptor->Address());
    }
    // Includes ranks to which this one connects later: the tree may have lost ranks before that.
    statement.closed = Closed(rails);
    statement.wanted = world <= kAllConnected ? Neighbours(bootstrap_.rank(), world) : neighbours_;
    bootstrap_.SetPlace(Encode(Whereabouts{self_, statement.addresses, statement.closed}));
    changed = Agree(WithNeeds(opened, rails), std::move(statement), Deadline());
    if (!changed.ok() || !SameLinks(decision, agreement_.decision)) continue;

    Links links;
    const absl::Duration patience = PatienceWith(rails);
    const absl::Status connected = Connect(rails, patience, links);
    std::map<int, Whereabouts> known = particulars_.wanted;
    changed = Agree(WithNeeds(connected, rails), {}, Deadline(patience));
    if (!changed.ok() || !SameLinks(decision, agreement_.decision)) continue;

    Fabric fabric;
    for (const ChosenRail& rail : rails) fabric.rails.push_back(rail.name);
    TakeStock(fabric);
    fabric.met = options_.met;
    if (neighbours_.size() + 1 == static_cast<size_t>(world)) AddTo(fabric.met, decision);
    for (size_t i = 0; i < neighbours_.size(); ++i) {
      std::vector<rails::Rail> peer_rails;
      peer_rails.reserve(rails.size());
      for (size_t k = 0; k < rails.size(); ++k) {
        peer_rails.push_back({rails[k].name, std::move(links[i * rails.size() + k].link)});
      }
      fabric.peers[neighbours_[i]] =
          std::make_unique<rails::Peer>(known[neighbours_[i]].name, std::move(peer_rails),
                                        Logger(options_.settings.log_level, self_));
    }
    const auto reach = [&](const Acceptors& acceptors, size_t first) {
      return [rails = OpenRails(rails, acceptors), known, world, first,
              log = Logger(options_.settings.log_level, self_)](bootstrap::Watch& watch) {
        return ReachOthers(rails, known, world, first, log, watch);
      };
    };
    std::vector<WireCheck::Wire> wires;
    const auto partner = known.find(fabric.partner);
    for (size_t k = 0; k < rails.size(); ++k) {
      const bool is_known = partner != known.end() && k < partner->second.addresses.size();
      wires.push_back({rails[k].name, acceptors_[k], is_known ? partner->second.addresses[k] : ""});
    }
    fabric.wires = WireCheck(std::move(wires));
    fabric.reach = reach(acceptors_, 0);
    fabric.lane_reach = reach(lane_acceptors_, rails.size());
    fabric.devices = std::move(own_.devices);
    fabric.segment = std::move(segment);
    if (fabric.segment.has_value()) fabric.lane_memory = LaneMemory(fabric);
    return fabric;
  }
}

std::vector<int> Setup::FirstNeighbours(const Decision& decision) const {
  const int world = bootstrap_.world_size();
  if (options_.all_neighbours) return Neighbours(bootstrap_.rank(), world);
  if (decision.all_met) return {};
  return world <= kAllConnected ? Neighbours(bootstrap_.rank(), world)
                                : RingNeighbours(bootstrap_.rank(), world);
}

const std::vector<int>& Setup::Place(const Decision& decision) const {
  return *std::find_if(decision.places.begin(), decision.places.end(),
                       [this](const std::vector<int>& place) {
                         return std::binary_search(place.begin(), place.end(), bootstrap_.rank());
                       });
}

std::byte* Setup::LaneMemory(const Fabric& fabric) const {
  const int sharers = static_cast<int>(Place(fabric.decision).size());
  return fabric.segment->data() + LaneOffset(fabric.decision.shm, sharers);
}

absl::StatusOr<std::optional<shm::Segment>> Setup::ShareMemory() {
  const Decision decision = agreement_.decision;
  const std::vector<int>& members = Place(decision);
  const bool gives = bootstrap_.rank() == members.front();
  const int sharers = static_cast<int>(members.size());
  const size_t bytes = LaneOffset(decision.shm, sharers) + shm::Mailbox::Bytes(sharers);
  absl::StatusOr<shm::SegmentServer> server = absl::UnknownError("");
  absl::StatusOr<shm::Segment> segment = absl::UnknownError("");
  Statement statement;
  statement.wanted = {members.front()};
  if (gives) {
    segment = shm::Segment::Create(bytes);
    server = shm::SegmentServer::Open();
    absl::Status opened = segment.status();
    opened.Update(server.status());
    own_.report.shm_trouble = std::string(opened.message());
    if (opened.ok()) statement.addresses = {server->address()};
  }
  absl::StatusOr<bool> changed = Agree(absl::OkStatus(), std::move(statement), Deadline());
  if (!changed.ok()) return changed.status();
  const std::vector<std::string> given = Of(members.front()).addresses;
  if (!given.empty()) {
    const absl::Duration patience = std::min(options_.settings.StartTimeout(), kLongestRdmaConnect);
    const absl::Time deadline = MonotonicNow() + patience;
    absl::Status shared;
    if (gives) {
      shared = server->Give(*segment, sharers - 1, deadline, aborted_);
    } else {
      segment = shm::Take(given.front(), bytes, deadline, aborted_);
      shared = segment.status();
    }
    own_.report.shm_trouble = std::string(shared.message());
  }
  const bool failed = *changed;
  changed = Agree(absl::OkStatus(), {}, Deadline(kLongestRdmaConnect));
  if (!changed.ok()) return changed.status();
  if (failed || *changed) return std::nullopt;
  segment->CloseFile();
  return *std::move(segment);
}

absl::Status Setup::CheckSecret() const {
  // Encryption needs a secret: without one, keys would be sent in the clear.
  const bool encrypts = options_.settings.frames == config::FrameWish::kEncrypted;
  if (!(options_.settings.require_secret || encrypts) || bootstrap_.world_size() == 1 ||
      bootstrap_.session().proves()) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "RAILHEAD_AUTH=", encrypts ? "encrypt" : "require", " is set, but the job has no secret",
      options_.no_secret_cause.empty() ? "" : " (", options_.no_secret_cause,
      options_.no_secret_cause.empty() ? "" : ")",
      ": mount a Secret into all of its pods and set RAILHEAD_SECRET_FILE, or unset "
      "RAILHEAD_AUTH"));
}

void Setup::TakeStock(Fabric& fabric) {
  fabric.decision = agreement_.decision;
  fabric.rejoin_addresses = std::move(agreement_.rejoin_addresses);
  fabric.rejoin_key = agreement_.key;
  fabric.rejoin_listener = std::move(rejoin_listener_);
  own_.facts.name = self_;
  own_.facts.memlock = preflight::MemlockLimit(options_.root);
  const uint64_t links = Neighbours(bootstrap_.rank(), bootstrap_.world_size()).size();
  for (size_t i = 0; i < own_.facts.rails.size(); ++i) {
    preflight::RailFacts& rail = own_.facts.rails[i];
    rail.trouble = own_.report.rails[i].trouble;
    if (!rail.port.has_value()) continue;
    own_.facts.registers += links * rail.port->registers;
    own_.facts.least_bytes += links * rail.port->least_bytes;
  }
  // Warnings concern rails in use only.
  if (fabric.decision.verbs) {
    fabric.warnings = StartWarnings(own_.facts, agreement_.usual);
  } else if (!fabric.decision.shm) {
    for (const ChosenRail& rail : ChooseRails(fabric.decision, own_, tcp_)) {
      if (rail.trouble.empty()) continue;
      fabric.warnings.push_back(absl::StrCat(rails::ToString(rail.name),
                                             " cannot be opened: ", rail.trouble,
                                             "; the other rails are used until it is up"));
    }
  }
  fabric.tcp = std::move(tcp_);
  fabric.pods = agreement_.pods;
  fabric.partner = particulars_.partner;
  fabric.facts = std::move(own_.facts);
  fabric.trouble = own_.report.trouble;
}

void Setup::OpenRejoinListener() {
  absl::StatusOr<std::shared_ptr<RejoinListener>> listener = RejoinListener::Get();
  // Only a group that continues without lost ranks needs it, and reports the error then.
  if (!listener.ok()) return;
  rejoin_listener_ = *std::move(listener);
  own_.report.rejoin_address = bootstrap::EncodePlace(net::SocketAddress{
      bootstrap_.local_address().value_or(net::LikelyPublicAddress()), rejoin_listener_->port()});
}

RailReport& Setup::ReportOn(const ChosenRail& rail) {
  return *std::find_if(own_.report.rails.begin(), own_.report.rails.end(),
                       [&rail](const RailReport& report) { return report.rail == rail.name.rail; });
}

absl::Status Setup::WithNeeds(const absl::Status& status,
                              const std::vector<ChosenRail>& rails) const {
  if (!absl::IsResourceExhausted(status)) return status;
  // Descriptors of the rendezvous, the tree and the library; and of each rail's listener.
  constexpr size_t kOwn = 32;
  constexpr size_t kRail = 2;
  const auto world = static_cast<size_t>(bootstrap_.world_size());
  const size_t needed = kOwn + (bootstrap_.rank() == 0 ? world : 0) + rails.size() * kRail +
                        neighbours_.size() * Descriptors(rails);
  return absl::ResourceExhaustedError(
      absl::StrCat(status.message(), "; with ", rails.size(), " rails to ", neighbours_.size(),
                   " ranks it needs about ", needed, " descriptors in addition to the program's"));
}

absl::Status Setup::OpenAcceptors(const std::vector<ChosenRail>& rails,
                                  Acceptors& acceptors) const {
  acceptors.clear();
  const auto wake = std::make_shared<transport::WakeEvent>();
  for (const ChosenRail& rail : rails) {
    const auto open = [&]() -> absl::StatusOr<std::shared_ptr<transport::Acceptor>> {
      absl::StatusOr<std::shared_ptr<transport::Acceptor>> acceptor = transport::Acceptor::Open(
          [listens = rail.listens, name = rails::ToString(rail.name),
           log = Logger(options_.settings.log_level, self_)] {
            return ListenerOf(listens, name, log);
          },
          static_cast<size_t>(bootstrap_.world_size()), static_cast<uint32_t>(bootstrap_.rank()),
          {bootstrap_.session().Mac("railhead rails", {}), static_cast<uint32_t>(rail.name.rail)},
          wake);
      if (!acceptor.ok() || !rail.trouble.empty()) return acceptor;
      if (absl::Status listens = (*acceptor)->Renew(MonotonicNow()); !listens.ok()) return listens;
      return acceptor;
    };
    absl::StatusOr<std::shared_ptr<transport::Acceptor>> acceptor = open();
    if (!acceptor.ok()) {
      return absl::Status(acceptor.status().code(),
                          absl::StrCat(self_, ": it cannot listen for ", rails::ToString(rail.name),
                                       ": ", acceptor.status().message()));
    }
    acceptors.push_back(*std::move(acceptor));
  }
  return absl::OkStatus();
}

absl::Status Setup::TryNeeds(const std::vector<ChosenRail>& rails) {
  // Counted, not tried: other threads of the program need descriptors, too.
  const std::optional<uint64_t> free = FreeDescriptors();
  if (free.has_value() && *free < neighbours_.size() * Descriptors(rails)) {
    const absl::Status error = net::ErrnoError("open what connections need", EMFILE);
    return absl::Status(error.code(), absl::StrCat(self_, ": ", error.message()));
  }
  for (const ChosenRail& rail : rails) {
    if (rail.device == nullptr || !rail.trouble.empty()) continue;
    const absl::Status pinned = rail.device->CanPin(neighbours_.size());
    if (pinned.ok()) continue;
    ReportOn(rail).trouble = absl::StrCat("no memory for its connections: ", pinned.message());
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> Setup::Agree(const absl::Status& problem, Statement statement,
                                  absl::Time deadline) {
  statement.report = comm::Encode(own_.report);
  if (statement.report == told_) {
    statement.report.clear();
  } else {
    told_ = statement.report;
  }
  absl::StatusOr<std::string> mine = comm::Encode(statement);
  if (!problem.ok()) mine = problem;
  const absl::StatusOr<bootstrap::Node::Result> result = bootstrap_.Agree(
      std::move(mine),
      [this](const std::vector<std::string>& statements) {
        return coordinator_.Answer(statements);
      },
      deadline);
  if (!result.ok()) return result.status();
  const int world = bootstrap_.world_size();
  absl::StatusOr<Particulars> particulars = ParseParticulars(result->for_this, world);
  if (!particulars.ok()) return particulars.status();
  particulars_ = *std::move(particulars);
  const bool changed = !result->for_all.empty();
  if (changed) {
    absl::StatusOr<Agreement> agreement = ParseAgreement(result->for_all, world);
    if (!agreement.ok()) return agreement.status();
    agreement_ = *std::move(agreement);
  }
  // Also if nothing has arrived, in case the first decision is missing.
  const absl::Status enough = CheckProtection(options_.settings, agreement_.decision, world);
  if (!enough.ok()) return Refuse(enough, deadline);
  return changed;
}

absl::Status Setup::Refuse(const absl::Status& status, absl::Time deadline) {
  const absl::Status refusal(status.code(), absl::StrCat(self_, ": ", status.message()));
  bootstrap_
      .Agree(
          refusal, [&refusal](const std::vector<std::string>&) { return refusal; }, deadline)
      .IgnoreError();
  return refusal;
}

Whereabouts Setup::Of(int rank) const {
  const auto found = particulars_.wanted.find(rank);
  return found != particulars_.wanted.end() ? found->second : Whereabouts();
}

absl::Duration Setup::PatienceWith(const std::vector<ChosenRail>& rails) const {
  const absl::Duration timeout = options_.settings.StartTimeout();
  return rails.front().device != nullptr ? std::min(timeout, kLongestRdmaConnect) : timeout;
}

absl::Status Setup::Connect(const std::vector<ChosenRail>& rails, absl::Duration patience,
                            Links& links) {
  const uint64_t own_closed = Closed(rails);
  for (const int neighbour : neighbours_) {
    const Whereabouts peer = Of(neighbour);
    for (size_t k = 0; k < rails.size(); ++k) {
      absl::StatusOr<std::unique_ptr<Link>> link = rails[k].Open(
          acceptors_[k], k < peer.addresses.size() ? peer.addresses[k] : "", peer.name);
      Connecting& connecting = links.emplace_back();
      connecting.awaited = ((own_closed | peer.closed) >> k & 1) == 0;
      connecting.result = link.status();
      if (link.ok()) connecting.link = *std::move(link);
    }
  }
  absl::Status result = ConnectAll(links, *acceptors_.front()->wake(),
                                   {MonotonicNow() + patience, rails.size(), kGrace}, aborted_);
  if (!result.ok()) {
    return absl::Status(result.code(), absl::StrCat(self_, ": ", result.message()));
  }
  for (size_t i = 0; i < neighbours_.size(); ++i) {
    result.Update(Record(rails, Of(neighbours_[i]),
                         absl::MakeSpan(links).subspan(i * rails.size(), rails.size())));
  }
  return result;
}

absl::Status Setup::Record(const std::vector<ChosenRail>& rails, const Whereabouts& peer,
                           absl::Span<const Connecting> links) {
  const bool over_tcp = rails.front().device == nullptr;
  const bool any = std::any_of(links.begin(), links.end(),
                               [](const Connecting& link) { return link.result.ok(); });
  const Logger log(options_.settings.log_level, self_);
  const std::string what = absl::StrCat("no connection to ", peer.name, ": ");
  std::vector<std::string> states;
  absl::Status error;
  for (size_t k = 0; k < rails.size(); ++k) {
    const absl::Status& link = links[k].result;
    if (link.ok()) continue;
    const std::string name = rails::ToString(rails[k].name);
    const bool closed_there = (peer.closed >> k & 1) != 0;
    const std::string why = !rails[k].trouble.empty() ? rails[k].trouble
                            : closed_there            ? "the peer cannot open it"
                                                      : std::string(link.message());
    states.push_back(absl::StrCat(name, ": ", why));
    error.Update(link);
    if (over_tcp && links[k].awaited && !IsLate(link)) {
      return absl::Status(link.code(), absl::StrCat(self_, ": ", name, ": ", what, why));
    }
    if (!any || !links[k].awaited) continue;
    if (over_tcp) {
      log.Warn(absl::StrCat(name, " to ", peer.name, ": not connected yet (", why,
                            "); starting on the other rails"));
      continue;
    }
    std::string& unreached = ReportOn(rails[k]).unreached;
    if (unreached.empty()) unreached = absl::StrCat(what, why);
  }
  if (any) return absl::OkStatus();
  const std::string all = absl::StrCat(what, absl::StrJoin(states, "; "));
  if (over_tcp) return absl::Status(error.code(), absl::StrCat(self_, ": ", all));
  if (own_.report.cut_off.empty()) own_.report.cut_off = all;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Fabric> SetUp(bootstrap::Bootstrap& bootstrap, const SetupOptions& options,
                             const Halt& aborted) {
  return Setup(bootstrap, options, aborted).Run();
}

}  // namespace railhead::comm
