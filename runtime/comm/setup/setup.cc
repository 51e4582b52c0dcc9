// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/setup/setup.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "runtime/base/now.h"
#include "runtime/base/random.h"
#include "runtime/base/round_up.h"
#include "runtime/bootstrap/messages.h"
#include "runtime/bootstrap/secret.h"
#include "runtime/comm/hierarchy/hierarchy.h"
#include "runtime/comm/setup/agreement.h"
#include "runtime/comm/setup/connect.h"
#include "runtime/comm/setup/neighbours.h"
#include "runtime/comm/setup/reach.h"
#include "runtime/comm/setup/start_warnings.h"
#include "runtime/comm/setup/unique_id.h"
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
constexpr size_t kRailsFileLimit = size_t{1} << 20;
// An RDMA rail whose peer has not answered by then does not work, and TCP may. Ranks connect in the
// same moment, so this is long; and a job that requires RDMA learns soon that it cannot run.
constexpr absl::Duration kLongestRdmaConnect = absl::Seconds(6);

// Of a connection.
constexpr size_t kDescriptors = 3;

// For ranks that meet again at a rejoin address of this job.
std::string NewKey() {
  const absl::StatusOr<std::string> random = RandomBytes(kKeyBytes);
  return random.ok() ? absl::BytesToHexString(*random) : "";
}

// The cores that this process may run on.
Cores AvailableCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof(set), &set);
  Cores cores;
  for (size_t core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &set)) continue;
    cores.resize(core / 8 + 1);
    cores.back() = static_cast<char>(static_cast<unsigned char>(cores.back()) | 1U << core % 8);
  }
  return cores;
}

// Where the memory of transfers begins, behind that of collectives.
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
  // A rail that the decision chose, as this rank has it.
  struct Chosen {
    rails::RailName name;
    RdmaRail* device = nullptr;                  // null: TCP
    net::IpAddress address;                      // where its acceptor listens
    transport::FrameProtection protection = {};  // over TCP

    absl::StatusOr<std::unique_ptr<Link>> Open(std::shared_ptr<transport::Acceptor> acceptor,
                                               transport::Locator peer_acceptor,
                                               absl::string_view peer) const;
  };
  using Links = std::vector<Connecting>;  // neighbour by neighbour, of each all rails

  // What RAILHEAD_AUTH=require asks for.
  absl::Status CheckSecret() const;
  void OpenDevices();
  void OpenRejoinListener();
  // What this rank knows of its rails when all is decided, and what to say of it.
  void TakeStock(Fabric& fabric);
  // The ranks that share memory with this one.
  const std::vector<int>& Place(const Decision& decision) const;
  std::byte* LaneMemory(const Fabric& fabric) const;
  // One round with shared memory. Nothing, when it does not work out and all have to decide again.
  absl::StatusOr<std::optional<shm::Segment>> ShareMemory();
  absl::StatusOr<std::vector<net::IpAddress>> TcpAddresses() const;
  std::vector<Chosen> Choose(const Decision& decision,
                             const std::vector<net::IpAddress>& tcp) const;
  // What others get at those with, whom this rank does not know from the start.
  using Acceptors = std::vector<std::shared_ptr<transport::Acceptor>>;  // by rail
  static std::vector<OpenRail> OpenRails(const std::vector<Chosen>& rails,
                                         const Acceptors& acceptors);
  absl::Status OpenAcceptors(const std::vector<Chosen>& rails, Acceptors& acceptors) const;
  // What connections need, so that the rank that lacks it is the one that is named, and at once.
  absl::Status TryNeeds(const std::vector<Chosen>& rails);
  // Tells rank 0 what is new, and hears what it has decided. Returns whether anything has changed.
  absl::StatusOr<bool> Agree(const absl::Status& problem, Statement statement, absl::Time deadline);
  // What is known of a rank that was wanted.
  Whereabouts Of(int rank) const;
  // How long a rank tries to connect.
  absl::Duration PatienceWith(const std::vector<Chosen>& rails) const;
  absl::Status Connect(const std::vector<Chosen>& rails, absl::Duration patience, Links& links);
  // Adds to an error for want of descriptors how many there should be.
  absl::Status WithNeeds(const absl::Status& status, const std::vector<Chosen>& rails) const;
  // A rail failed: an RDMA rail is marked in the report, and all will decide again; without TCP
  // there is nothing left to decide.
  absl::Status Blame(const Chosen& rail, absl::string_view what, const absl::Status& status);

  // When to give an exchange up: the timeout after the others had to come. Who is done early with a
  // stage comes as much too early as another may still take for it.
  absl::Time Deadline(absl::Duration others_may_take = absl::ZeroDuration()) const {
    return MonotonicNow() + options_.settings.StartTimeout() + others_may_take;
  }

  bootstrap::Bootstrap& bootstrap_;
  const SetupOptions& options_;
  const Halt& aborted_;
  std::string self_;
  std::vector<int> neighbours_;
  RankReport report_;
  preflight::RankFacts facts_;
  std::string told_;         // the report as rank 0 knows it
  Coordinator coordinator_;  // of rank 0
  Agreement agreement_;
  Particulars particulars_;
  std::optional<net::Fd> rejoin_listener_;
  Acceptors acceptors_;
  Acceptors lane_acceptors_;  // of transfers
  std::map<int, fabric::PodRail> pod_rails_;
  std::map<int, std::unique_ptr<RdmaRail>> devices_;
};

absl::StatusOr<Fabric> Setup::Run() {
  OpenDevices();
  const absl::StatusOr<std::vector<net::IpAddress>> tcp = TcpAddresses();
  OpenRejoinListener();
  absl::Status problem = options_.problem;
  problem.Update(tcp.status());
  problem.Update(CheckSecret());
  if (tcp.ok()) report_.tcp_rails = static_cast<int>(tcp->size());
  if (!problem.ok()) {
    problem = absl::Status(problem.code(), absl::StrCat(self_, ": ", problem.message()));
  }
  absl::StatusOr<bool> changed = Agree(problem, {}, Deadline());
  std::optional<shm::Segment> segment;
  // Every round but the last takes at least one rail, or shared memory, out of the choice, so this
  // ends.
  while (true) {
    if (!changed.ok()) return changed.status();
    const Decision& decision = agreement_.decision;
    // What was shared before a rail turned out not to work stays.
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
    const std::vector<Chosen> rails = Choose(decision, *tcp);
    const int world = bootstrap_.world_size();
    // The others connect when they have something for each other.
    neighbours_ = world <= kAllConnected || options_.all_neighbours
                      ? Neighbours(bootstrap_.rank(), world)
                      : RingNeighbours(bootstrap_.rank(), world);
    absl::Status opened = OpenAcceptors(rails, acceptors_);
    opened.Update(OpenAcceptors(rails, lane_acceptors_));
    if (opened.ok()) opened = TryNeeds(rails);
    Statement statement;
    for (const Acceptors& acceptors : {acceptors_, lane_acceptors_}) {
      for (const auto& acceptor : acceptors) statement.addresses.push_back(acceptor->Address());
    }
    statement.wanted = neighbours_;
    bootstrap_.SetPlace(Encode(Whereabouts{self_, statement.addresses}));
    changed = Agree(WithNeeds(opened, rails), std::move(statement), Deadline());
    if (!changed.ok() || *changed) continue;

    Links links;
    const absl::Duration patience = PatienceWith(rails);
    const absl::Status connected = Connect(rails, patience, links);
    std::map<int, Whereabouts> known = particulars_.wanted;
    changed = Agree(WithNeeds(connected, rails), {}, Deadline(patience));
    if (!changed.ok() || *changed) continue;

    Fabric fabric;
    for (const Chosen& rail : rails) fabric.rails.push_back(rail.name);
    TakeStock(fabric);
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
    fabric.reach = reach(acceptors_, 0);
    fabric.lane_reach = reach(lane_acceptors_, rails.size());
    fabric.devices = std::move(devices_);
    fabric.segment = std::move(segment);
    if (fabric.segment.has_value()) fabric.lane_memory = LaneMemory(fabric);
    return fabric;
  }
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
    report_.shm_trouble = std::string(opened.message());
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
    report_.shm_trouble = std::string(shared.message());
  }
  const bool failed = *changed;
  changed = Agree(absl::OkStatus(), {}, Deadline(kLongestRdmaConnect));
  if (!changed.ok()) return changed.status();
  if (failed || *changed) return std::nullopt;
  return *std::move(segment);
}

absl::Status Setup::CheckSecret() const {
  // Without a secret, the keys cross the network.
  const bool encrypts = options_.settings.frames == config::FrameWish::kEncrypted;
  if (!(options_.settings.require_secret || encrypts) || bootstrap_.world_size() == 1 ||
      bootstrap_.session().proves()) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "RAILHEAD_AUTH=", encrypts ? "encrypt" : "require", " is set and the job has no secret",
      options_.no_secret_cause.empty() ? "" : " (", options_.no_secret_cause,
      options_.no_secret_cause.empty() ? "" : ")",
      ": mount a Secret into all of its pods and set RAILHEAD_SECRET_FILE, or unset "
      "RAILHEAD_AUTH"));
}

void Setup::OpenDevices() {
  const config::Settings& settings = options_.settings;
  report_.name = self_;
  report_.choice = settings.transport;
  report_.require_rdma = settings.require_rdma;
  report_.fallback = settings.fallback;
  report_.place = options_.place;
  report_.cores = AvailableCores();
  report_.cpu = ReadCpuLimit(options_.root);
  report_.algorithms = settings.algorithms;
  report_.ib_traffic_class = settings.ib_traffic_class;
  report_.ib_service_level = settings.ib_service_level;
  report_.configured = settings.SetAlike();
  report_.frames = settings.frames;
  report_.has_aes = transport::HasAes256Gcm();
  // Who chose TCP wants nothing of RDMA, not even its errors.
  if (settings.transport == config::TransportChoice::kTcp ||
      settings.transport == config::TransportChoice::kShm) {
    return;
  }
  const std::string path =
      absl::StrCat(absl::StripSuffix(options_.root, "/"),
                   absl::StartsWith(settings.rails_file, "/") ? "" : "/", settings.rails_file);
  const absl::StatusOr<std::string> text = ReadWholeFile(path, kRailsFileLimit);
  if (!text.ok()) {
    report_.has_rails_file = !absl::IsNotFound(text.status());
    report_.trouble = absl::IsNotFound(text.status())
                          ? absl::StrCat("it was given no RDMA device (there is no ",
                                         settings.rails_file, "); ask for rdma/hca in its pod")
                          : std::string(text.status().message());
    return;
  }
  report_.has_rails_file = true;
  const absl::StatusOr<fabric::PodRails> pod_rails = fabric::ParsePodRails(*text);
  if (!pod_rails.ok()) {
    report_.trouble = absl::StrCat(settings.rails_file, ": ", pod_rails.status().message());
    return;
  }
  const Logger log(options_.settings.log_level, self_);
  std::set<int> wanted(settings.rails.begin(), settings.rails.end());
  for (const fabric::PodRail& rail : pod_rails->rails) {
    if (!settings.rails.empty() && wanted.erase(rail.rail) == 0) continue;
    absl::StatusOr<std::unique_ptr<RdmaRail>> device = options_.open_rdma_rail(rail);
    preflight::RailFacts facts = preflight::ReadHca(options_.root, rail);
    if (device.ok()) facts.port = (*device)->Facts();
    report_.rails.push_back({rail.rail, rail.device, std::string(device.status().message()),
                             facts.rate, device.ok() ? facts.port->mtu : 0});
    facts_.rails.push_back(std::move(facts));
    pod_rails_[rail.rail] = rail;
    if (!device.ok()) continue;
    log.Info((*device)->Describe());
    devices_[rail.rail] = *std::move(device);
  }
  // Behind those that are there, whose facts have the same order.
  for (const int rail : wanted) {
    report_.rails.push_back({rail, "",
                             absl::StrCat(settings.SetBy("rails"), " names it, and ",
                                          settings.rails_file, " does not have it")});
  }
}

void Setup::TakeStock(Fabric& fabric) {
  fabric.decision = agreement_.decision;
  fabric.rejoin_addresses = std::move(agreement_.rejoin_addresses);
  fabric.rejoin_key = agreement_.key;
  fabric.rejoin_listener = std::move(rejoin_listener_);
  facts_.name = self_;
  facts_.memlock = preflight::MemlockLimit(options_.root);
  const uint64_t links = Neighbours(bootstrap_.rank(), bootstrap_.world_size()).size();
  for (size_t i = 0; i < facts_.rails.size(); ++i) {
    preflight::RailFacts& rail = facts_.rails[i];
    rail.trouble = report_.rails[i].trouble;
    if (!rail.port.has_value()) continue;
    facts_.registers += links * rail.port->registers;
    facts_.least_bytes += links * rail.port->least_bytes;
  }
  // Of rails that nobody uses there is nothing to say now.
  if (fabric.decision.verbs) {
    fabric.warnings = StartWarnings(facts_, agreement_.usual);
  }
  fabric.pods = agreement_.pods;
  fabric.partner = particulars_.partner;
  fabric.facts = std::move(facts_);
  fabric.trouble = report_.trouble;
}

void Setup::OpenRejoinListener() {
  const absl::StatusOr<UniqueId> id =
      MakeUniqueId(bootstrap_.local_address().value_or(net::LikelyPublicAddress()));
  // Only a group without the lost ranks needs it, and will say so.
  if (!id.ok()) return;
  rejoin_listener_ = TakeListener(*id);
  report_.rejoin_address = bootstrap::EncodePlace(net::SocketAddress{id->address, id->port});
}

absl::StatusOr<std::vector<net::IpAddress>> Setup::TcpAddresses() const {
  const config::Settings& settings = options_.settings;
  if (settings.socket_ifname.empty()) {
    return std::vector<net::IpAddress>{
        bootstrap_.local_address().value_or(net::LikelyPublicAddress())};
  }
  std::vector<std::string> names = {settings.socket_ifname};
  names.insert(names.end(), settings.more_socket_ifnames.begin(),
               settings.more_socket_ifnames.end());
  std::vector<net::IpAddress> addresses;
  for (const std::string& name : names) {
    const absl::StatusOr<net::IpAddress> address = net::AddressOfInterface(name);
    if (!address.ok()) {
      return absl::Status(address.status().code(), absl::StrCat(settings.SetBy("socketIfname"),
                                                                ": ", address.status().message()));
    }
    addresses.push_back(*address);
  }
  return addresses;
}

std::vector<Setup::Chosen> Setup::Choose(const Decision& decision,
                                         const std::vector<net::IpAddress>& tcp) const {
  std::vector<Chosen> rails;
  for (const int number : decision.rails) {
    const fabric::PodRail& rail = pod_rails_.find(number)->second;
    rails.push_back({{number, rail.device, rail.port, "verbs"},
                     devices_.find(number)->second.get(),
                     tcp.front()});
  }
  if (decision.verbs) return rails;
  for (const net::IpAddress& address : tcp) {
    const int number = static_cast<int>(rails.size());
    rails.push_back({{number, net::InterfaceOfAddress(address), 0, "tcp"},
                     nullptr,
                     address,
                     decision.protection});
  }
  return rails;
}

absl::Status Setup::Blame(const Chosen& rail, absl::string_view what, const absl::Status& status) {
  if (rail.device == nullptr) {
    return absl::Status(status.code(), absl::StrCat(self_, ": ", rails::ToString(rail.name), ": ",
                                                    what, ": ", status.message()));
  }
  for (RailReport& report : report_.rails) {
    if (report.rail == rail.name.rail && report.trouble.empty()) {
      report.trouble = absl::StrCat(what, ": ", status.message());
    }
  }
  return absl::OkStatus();
}

absl::Status Setup::WithNeeds(const absl::Status& status, const std::vector<Chosen>& rails) const {
  if (!absl::IsResourceExhausted(status)) return status;
  // Of the rendezvous, the tree and this library's own; and each rail's.
  constexpr size_t kOwn = 32;
  constexpr size_t kRail = 4;
  const auto world = static_cast<size_t>(bootstrap_.world_size());
  const size_t needed = kOwn + (bootstrap_.rank() == 0 ? world : 0) +
                        rails.size() * (kRail + neighbours_.size() * kDescriptors);
  return absl::ResourceExhaustedError(
      absl::StrCat(status.message(), "; with ", rails.size(), " rails to ", neighbours_.size(),
                   " ranks it needs about ", needed, " descriptors besides those of the program"));
}

absl::Status Setup::OpenAcceptors(const std::vector<Chosen>& rails, Acceptors& acceptors) const {
  acceptors.clear();
  for (const Chosen& rail : rails) {
    absl::StatusOr<std::shared_ptr<transport::Acceptor>> acceptor = transport::Acceptor::Open(
        rail.address, static_cast<size_t>(bootstrap_.world_size()),
        static_cast<uint32_t>(bootstrap_.rank()),
        {bootstrap_.session().Mac("railhead rails", {}), static_cast<uint32_t>(rail.name.rail)});
    if (!acceptor.ok()) {
      return absl::Status(acceptor.status().code(),
                          absl::StrCat(self_, ": it cannot listen for ", rails::ToString(rail.name),
                                       ": ", acceptor.status().message()));
    }
    acceptors.push_back(*std::move(acceptor));
  }
  return absl::OkStatus();
}

absl::Status Setup::TryNeeds(const std::vector<Chosen>& rails) {
  std::vector<net::Fd> trial;
  while (trial.size() < rails.size() * neighbours_.size() * kDescriptors) {
    trial.emplace_back(::dup(acceptors_.front()->event_fd()));
    if (trial.back().valid()) continue;
    const absl::Status error = net::ErrnoError("open what connections need", errno);
    return absl::Status(error.code(), absl::StrCat(self_, ": ", error.message()));
  }
  for (const Chosen& rail : rails) {
    if (rail.device == nullptr) continue;
    const absl::Status pinned = rail.device->CanPin(neighbours_.size());
    if (!pinned.ok()) {
      Blame(rail, "no memory for its connections", pinned).IgnoreError();
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> Setup::Agree(const absl::Status& problem, Statement statement,
                                  absl::Time deadline) {
  statement.report = comm::Encode(report_);
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
  if (result->for_all.empty()) return false;
  absl::StatusOr<Agreement> agreement = ParseAgreement(result->for_all, world);
  if (!agreement.ok()) return agreement.status();
  agreement_ = *std::move(agreement);
  return true;
}

Whereabouts Setup::Of(int rank) const {
  const auto found = particulars_.wanted.find(rank);
  return found != particulars_.wanted.end() ? found->second : Whereabouts();
}

absl::StatusOr<std::unique_ptr<Link>> Setup::Chosen::Open(
    std::shared_ptr<transport::Acceptor> acceptor, transport::Locator peer_acceptor,
    absl::string_view peer) const {
  return device != nullptr ? device->Open(std::move(acceptor), std::move(peer_acceptor), peer)
                           : transport::OpenTcpLink(std::move(acceptor), std::move(peer_acceptor),
                                                    peer, protection);
}

std::vector<OpenRail> Setup::OpenRails(const std::vector<Chosen>& rails,
                                       const Acceptors& acceptors) {
  std::vector<OpenRail> open;
  open.reserve(rails.size());
  for (size_t k = 0; k < rails.size(); ++k) {
    open.push_back({rails[k].name, acceptors[k],
                    [rail = rails[k]](std::shared_ptr<transport::Acceptor> acceptor,
                                      transport::Locator peer, absl::string_view name) {
                      return rail.Open(std::move(acceptor), std::move(peer), name);
                    }});
  }
  return open;
}

absl::Duration Setup::PatienceWith(const std::vector<Chosen>& rails) const {
  const absl::Duration timeout = options_.settings.StartTimeout();
  return rails.front().device != nullptr ? std::min(timeout, kLongestRdmaConnect) : timeout;
}

absl::Status Setup::Connect(const std::vector<Chosen>& rails, absl::Duration patience,
                            Links& links) {
  const absl::Time deadline = MonotonicNow() + patience;
  for (const int neighbour : neighbours_) {
    const Whereabouts peer = Of(neighbour);
    for (size_t k = 0; k < rails.size(); ++k) {
      absl::StatusOr<std::unique_ptr<Link>> link = rails[k].Open(
          acceptors_[k], k < peer.addresses.size() ? peer.addresses[k] : "", peer.name);
      Connecting& connecting = links.emplace_back();
      connecting.result = link.status();
      if (link.ok()) connecting.link = *std::move(link);
    }
  }
  absl::Status result = ConnectAll(links, acceptors_, deadline, aborted_);
  for (size_t i = 0; i < links.size(); ++i) {
    if (links[i].result.ok()) continue;
    const std::string peer = Of(neighbours_[i / rails.size()]).name;
    result.Update(
        Blame(rails[i % rails.size()], absl::StrCat("no connection to ", peer), links[i].result));
  }
  return result;
}

}  // namespace

absl::StatusOr<Fabric> SetUp(bootstrap::Bootstrap& bootstrap, const SetupOptions& options,
                             const Halt& aborted) {
  return Setup(bootstrap, options, aborted).Run();
}

}  // namespace railhead::comm
