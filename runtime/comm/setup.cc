// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/setup.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "runtime/base/wire.h"
#include "runtime/comm/connect.h"
#include "runtime/comm/hierarchy.h"
#include "runtime/comm/neighbours.h"
#include "runtime/comm/start_warnings.h"
#include "runtime/comm/unique_id.h"
#include "runtime/net/address.h"
#include "runtime/net/socket.h"
#include "runtime/preflight/local.h"
#include "runtime/shm/group.h"
#include "runtime/shm/mailbox.h"
#include "runtime/shm/share.h"
#include "runtime/transport/tcp/tcp.h"

namespace railhead::comm {
namespace {

using transport::Link;

constexpr size_t kAddressLimit = 4096;
constexpr size_t kRailsFileLimit = size_t{1} << 20;
// An RDMA rail whose peer has not answered by then does not work, and TCP may. Ranks connect in the
// same moment, so this is long; and a job that requires RDMA learns soon that it cannot run.
constexpr absl::Duration kLongestRdmaConnect = absl::Seconds(6);

// Of a connection.
constexpr size_t kDescriptors = 3;

// Reads a small file. NotFound when it does not exist.
absl::StatusOr<std::string> ReadFile(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "re"),
                                                             &std::fclose);
  if (file == nullptr) {
    if (errno == ENOENT || errno == ENOTDIR) return absl::NotFoundError(path);
    return net::ErrnoError(absl::StrCat("open ", path), errno);
  }
  std::string text(kRailsFileLimit + 1, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  if (std::ferror(file.get()) != 0) return net::ErrnoError(absl::StrCat("read ", path), errno);
  return text;
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

// What goes round once the decision is known: what is new in the report, and addresses.
struct Offer {
  std::string news;
  std::vector<std::string> addresses;  // of this rank's halls, by rail; or of its giver of memory
};

std::string Encode(const Offer& offer) {
  WireWriter writer;
  writer.String(offer.news);
  writer.U32(static_cast<uint32_t>(offer.addresses.size()));
  for (const std::string& address : offer.addresses) writer.String(address);
  return writer.Take();
}

absl::StatusOr<Offer> ParseOffer(absl::string_view bytes) {
  WireReader reader(bytes);
  Offer offer;
  offer.news = reader.String(bytes.size());
  const uint32_t count = reader.U32();
  for (uint32_t i = 0; i < count && reader.ok(); ++i) {
    offer.addresses.push_back(reader.String(kAddressLimit));
  }
  if (!reader.Complete()) return absl::InternalError("a rank's addresses are malformed");
  return offer;
}

class Setup {
 public:
  Setup(bootstrap::Bootstrap& bootstrap, const SetupOptions& options, const Halt& aborted)
      : bootstrap_(bootstrap),
        options_(options),
        aborted_(aborted),
        self_(bootstrap.Describe(bootstrap.rank())) {}

  absl::StatusOr<Fabric> Run();

 private:
  // A rail that the decision chose, as this rank has it.
  struct Chosen {
    rails::RailName name;
    RdmaRail* device = nullptr;  // null: TCP
    net::IpAddress address;      // where its hall listens

    absl::StatusOr<std::unique_ptr<Link>> Open(std::shared_ptr<transport::Hall> hall,
                                               absl::string_view peer_hall,
                                               absl::string_view peer) const;
  };
  using Links = std::vector<Connecting>;  // neighbour by neighbour, of each all rails

  void OpenDevices();
  void OpenDoor();
  // What this rank knows of its rails when all is decided, and what to say of it.
  void TakeStock(Fabric& fabric);
  // One round with shared memory. Nothing, when it does not work out and all have to decide again.
  absl::StatusOr<std::optional<shm::Segment>> ShareMemory(const Decision& decision);
  absl::StatusOr<std::vector<net::IpAddress>> TcpAddresses() const;
  std::vector<Chosen> Choose(const Decision& decision,
                             const std::vector<net::IpAddress>& tcp) const;
  rails::Reach ReachOthers(const std::vector<Chosen>& rails) const;
  absl::Status OpenHalls(const std::vector<Chosen>& rails);
  // What connections need, so that the rank that lacks it is the one that is named, and at once.
  absl::Status TryNeeds(const std::vector<Chosen>& rails);
  // What this rank's report has that the others do not know: nothing, or all of it.
  std::string News();
  // Takes what the ranks have told. Returns whether a report is another than before.
  absl::StatusOr<bool> Hear(const std::vector<std::string>& news);
  // Both return whether the reports have changed.
  absl::StatusOr<bool> ExchangeReports(const absl::Status& problem, absl::Time deadline);
  absl::StatusOr<bool> ExchangeOffers(const absl::Status& problem, Offer offer);
  // Where a rank's hall is; "" when its offer does not say.
  std::string HallOf(int rank, size_t rail) const;
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
    return absl::Now() + options_.settings.StartTimeout() + others_may_take;
  }

  bootstrap::Bootstrap& bootstrap_;
  const SetupOptions& options_;
  const Halt& aborted_;
  std::string self_;
  std::vector<int> neighbours_;
  static std::vector<std::string> Doors(const std::vector<RankReport>& reports);

  RankReport report_;
  preflight::RankFacts facts_;
  std::string told_;                 // the report as the others know it
  std::vector<RankReport> reports_;  // of all ranks, as all know them
  std::vector<Offer> offers_;        // of all ranks
  std::optional<net::Fd> door_;
  std::vector<std::shared_ptr<transport::Hall>> halls_;  // by rail
  std::map<int, fabric::PodRail> pod_rails_;
  std::map<int, std::unique_ptr<RdmaRail>> devices_;
};

absl::StatusOr<Fabric> Setup::Run() {
  OpenDevices();
  const absl::StatusOr<std::vector<net::IpAddress>> tcp = TcpAddresses();
  OpenDoor();
  absl::Status problem = options_.problem;
  problem.Update(tcp.status());
  if (tcp.ok()) report_.tcp_rails = static_cast<int>(tcp->size());
  if (!problem.ok()) {
    problem = absl::Status(problem.code(), absl::StrCat(self_, ": ", problem.message()));
  }
  absl::StatusOr<bool> changed = ExchangeReports(problem, Deadline());
  std::optional<shm::Segment> segment;
  // Every round but the last takes at least one rail, or shared memory, out of the choice, so this
  // ends.
  while (true) {
    if (!changed.ok()) return changed.status();
    absl::StatusOr<Decision> decision = Decide(reports_);
    if (!decision.ok()) return decision.status();
    // What was shared before a rail turned out not to work stays.
    if (!decision->places.empty() && !segment.has_value()) {
      absl::StatusOr<std::optional<shm::Segment>> shared = ShareMemory(*decision);
      if (!shared.ok()) return shared.status();
      if (!shared->has_value()) continue;
      segment = *std::move(shared);
    }
    if (decision->shm) {
      Fabric fabric;
      fabric.decision = *std::move(decision);
      fabric.doors = Doors(reports_);
      fabric.door = std::move(door_);
      fabric.rails.push_back({0, "memory", 0, "shm"});
      TakeStock(fabric);
      fabric.segment = std::move(segment);
      return fabric;
    }
    const std::vector<Chosen> rails = Choose(*decision, *tcp);
    const int world = bootstrap_.world_size();
    // The others connect when they have something for each other.
    neighbours_ = world <= kAllConnected || options_.all_neighbours
                      ? Neighbours(bootstrap_.rank(), world)
                      : RingNeighbours(bootstrap_.rank(), world);
    absl::Status opened = OpenHalls(rails);
    if (opened.ok()) opened = TryNeeds(rails);
    Offer offer;
    for (const auto& hall : halls_) offer.addresses.push_back(hall->Address());
    changed = ExchangeOffers(WithNeeds(opened, rails), std::move(offer));
    if (!changed.ok() || *changed) continue;

    Links links;
    const absl::Duration patience = PatienceWith(rails);
    const absl::Status connected = Connect(rails, patience, links);
    changed = ExchangeReports(WithNeeds(connected, rails), Deadline(patience));
    if (!changed.ok() || *changed) continue;

    Fabric fabric;
    fabric.decision = *std::move(decision);
    fabric.doors = Doors(reports_);
    fabric.door = std::move(door_);
    for (const Chosen& rail : rails) fabric.rails.push_back(rail.name);
    TakeStock(fabric);
    for (size_t i = 0; i < neighbours_.size(); ++i) {
      std::vector<rails::Rail> peer_rails;
      peer_rails.reserve(rails.size());
      for (size_t k = 0; k < rails.size(); ++k) {
        peer_rails.push_back({rails[k].name, std::move(links[i * rails.size() + k].link)});
      }
      fabric.peers[neighbours_[i]] =
          std::make_unique<rails::Peer>(bootstrap_.Describe(neighbours_[i]), std::move(peer_rails),
                                        Logger(options_.settings.log_level, self_));
    }
    fabric.reach = ReachOthers(rails);
    fabric.devices = std::move(devices_);
    fabric.segment = std::move(segment);
    return fabric;
  }
}

absl::StatusOr<std::optional<shm::Segment>> Setup::ShareMemory(const Decision& decision) {
  const std::vector<int>& members = *std::find_if(
      decision.places.begin(), decision.places.end(), [this](const std::vector<int>& place) {
        return std::binary_search(place.begin(), place.end(), bootstrap_.rank());
      });
  const bool gives = bootstrap_.rank() == members.front();
  const int sharers = static_cast<int>(members.size());
  const size_t bytes = decision.shm ? shm::Group::Bytes(sharers) + shm::Mailbox::Bytes(sharers)
                                    : Hierarchy::Bytes(sharers);
  absl::StatusOr<shm::Giver> giver = absl::UnknownError("");
  absl::StatusOr<shm::Segment> segment = absl::UnknownError("");
  Offer offer;
  if (gives) {
    segment = shm::Segment::Create(bytes);
    giver = shm::Giver::Open();
    absl::Status opened = segment.status();
    opened.Update(giver.status());
    report_.shm_trouble = std::string(opened.message());
    if (opened.ok()) offer.addresses = {giver->address()};
  }
  absl::StatusOr<bool> changed = ExchangeOffers(absl::OkStatus(), std::move(offer));
  if (!changed.ok()) return changed.status();
  const auto first = static_cast<size_t>(members.front());
  const std::vector<std::string>& given = offers_[first].addresses;
  if (reports_[first].shm_trouble.empty()) {
    const absl::Duration patience = std::min(options_.settings.StartTimeout(), kLongestRdmaConnect);
    const absl::Time deadline = absl::Now() + patience;
    absl::Status shared;
    if (gives) {
      shared = giver->Give(*segment, sharers - 1, deadline, aborted_);
    } else {
      segment = shm::Take(given.empty() ? "" : given.front(), bytes, deadline, aborted_);
      shared = segment.status();
    }
    report_.shm_trouble = std::string(shared.message());
  }
  const bool failed = *changed;
  changed = ExchangeReports(absl::OkStatus(), Deadline(kLongestRdmaConnect));
  if (!changed.ok()) return changed.status();
  if (failed || *changed) return std::nullopt;
  return *std::move(segment);
}

void Setup::OpenDevices() {
  const config::Settings& settings = options_.settings;
  report_.name = self_;
  report_.choice = settings.transport;
  report_.require_rdma = settings.require_rdma;
  report_.fallback = settings.fallback;
  report_.place = options_.place;
  report_.cores = AvailableCores();
  report_.algorithms = settings.algorithms;
  report_.ib_traffic_class = settings.ib_traffic_class;
  report_.ib_service_level = settings.ib_service_level;
  // Who chose TCP wants nothing of RDMA, not even its errors.
  if (settings.transport == config::TransportChoice::kTcp ||
      settings.transport == config::TransportChoice::kShm) {
    return;
  }
  const std::string path =
      absl::StrCat(absl::StripSuffix(options_.root, "/"),
                   absl::StartsWith(settings.rails_file, "/") ? "" : "/", settings.rails_file);
  const absl::StatusOr<std::string> text = ReadFile(path);
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
  for (const fabric::PodRail& rail : pod_rails->rails) {
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
}

void Setup::TakeStock(Fabric& fabric) {
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
    fabric.warnings = StartWarnings(bootstrap_.rank(), facts_, reports_);
  }
  fabric.place_numbers = PlaceNumbers(reports_);
  fabric.facts = std::move(facts_);
  fabric.trouble = report_.trouble;
}

void Setup::OpenDoor() {
  const absl::StatusOr<UniqueId> id =
      MakeUniqueId(bootstrap_.local_address().value_or(net::LikelyPublicAddress()));
  // Only a group without the lost ranks needs it, and will say so.
  if (!id.ok()) return;
  door_ = TakeListener(*id);
  report_.door = comm::Encode(*id);
}

std::vector<std::string> Setup::Doors(const std::vector<RankReport>& reports) {
  std::vector<std::string> doors;
  doors.reserve(reports.size());
  for (const RankReport& report : reports) doors.push_back(report.door);
  return doors;
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
      return absl::Status(address.status().code(),
                          absl::StrCat("RAILHEAD_SOCKET_IFNAME: ", address.status().message()));
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
    rails.push_back({{number, net::InterfaceOfAddress(address), 0, "tcp"}, nullptr, address});
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
  constexpr size_t kRail = 2;
  const auto world = static_cast<size_t>(bootstrap_.world_size());
  const size_t needed = kOwn + (bootstrap_.rank() == 0 ? world : 0) +
                        rails.size() * (kRail + neighbours_.size() * kDescriptors);
  return absl::ResourceExhaustedError(
      absl::StrCat(status.message(), "; with ", rails.size(), " rails to ", neighbours_.size(),
                   " ranks it needs about ", needed, " descriptors besides those of the program"));
}

absl::Status Setup::OpenHalls(const std::vector<Chosen>& rails) {
  halls_.clear();
  for (const Chosen& rail : rails) {
    absl::StatusOr<std::shared_ptr<transport::Hall>> hall =
        transport::Hall::Open(rail.address, static_cast<size_t>(bootstrap_.world_size()));
    if (!hall.ok()) {
      return absl::Status(hall.status().code(),
                          absl::StrCat(self_, ": it cannot listen for ", rails::ToString(rail.name),
                                       ": ", hall.status().message()));
    }
    halls_.push_back(*std::move(hall));
  }
  return absl::OkStatus();
}

absl::Status Setup::TryNeeds(const std::vector<Chosen>& rails) {
  std::vector<net::Fd> trial;
  while (trial.size() < rails.size() * neighbours_.size() * kDescriptors) {
    trial.emplace_back(::dup(halls_.front()->event_fd()));
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

std::string Setup::News() {
  std::string report = comm::Encode(report_);
  if (report == told_) return "";
  told_ = report;
  return report;
}

absl::StatusOr<bool> Setup::Hear(const std::vector<std::string>& news) {
  reports_.resize(news.size());
  bool changed = false;
  for (size_t rank = 0; rank < news.size(); ++rank) {
    if (news[rank].empty()) continue;
    absl::StatusOr<RankReport> report = ParseReport(news[rank]);
    if (!report.ok()) return report.status();
    reports_[rank] = *std::move(report);
    changed = true;
  }
  return changed;
}

absl::StatusOr<bool> Setup::ExchangeReports(const absl::Status& problem, absl::Time deadline) {
  absl::StatusOr<std::string> mine = News();
  if (!problem.ok()) mine = problem;
  const absl::StatusOr<std::vector<std::string>> all =
      bootstrap_.Exchange(std::move(mine), deadline);
  if (!all.ok()) return all.status();
  return Hear(*all);
}

std::string Setup::HallOf(int rank, size_t rail) const {
  const std::vector<std::string>& halls = offers_[static_cast<size_t>(rank)].addresses;
  return rail < halls.size() ? halls[rail] : "";
}

absl::StatusOr<std::unique_ptr<Link>> Setup::Chosen::Open(std::shared_ptr<transport::Hall> hall,
                                                          absl::string_view peer_hall,
                                                          absl::string_view peer) const {
  return device != nullptr ? device->Open(std::move(hall), peer_hall, peer)
                           : transport::OpenTcpLink(std::move(hall), peer_hall, peer);
}

rails::Reach Setup::ReachOthers(const std::vector<Chosen>& rails) const {
  struct Others {
    std::vector<Chosen> rails;
    std::vector<std::shared_ptr<transport::Hall>> halls;
    std::vector<std::string> names;                     // by rank
    std::vector<std::vector<std::string>> addresses;    // [rank][rail]
    std::vector<std::map<std::string, int>> rank_with;  // by rail and token
    Logger log;
  };
  const auto others = std::make_shared<Others>();
  others->halls = halls_;
  others->log = Logger(options_.settings.log_level, self_);
  others->rank_with.resize(rails.size());
  others->addresses.resize(offers_.size());
  others->rails = rails;
  for (int rank = 0; rank < bootstrap_.world_size(); ++rank) {
    others->names.push_back(bootstrap_.Describe(rank));
    for (size_t k = 0; k < rails.size(); ++k) {
      const std::string address = HallOf(rank, k);
      const absl::StatusOr<transport::Hall::Place> place = transport::Hall::ParsePlace(address);
      if (place.ok()) others->rank_with[k][place->token] = rank;
      others->addresses[static_cast<size_t>(rank)].push_back(address);
    }
  }
  rails::Reach reach;
  reach.doorbells.assign(halls_.begin(), halls_.end());
  reach.open = [others](int rank) -> absl::StatusOr<std::unique_ptr<rails::Peer>> {
    const auto index = static_cast<size_t>(rank);
    std::vector<rails::Rail> peer_rails;
    for (size_t k = 0; k < others->rails.size(); ++k) {
      const std::string& peer = others->names[index];
      absl::StatusOr<std::unique_ptr<Link>> link =
          others->rails[k].Open(others->halls[k], others->addresses[index][k], peer);
      if (!link.ok()) {
        return absl::Status(link.status().code(),
                            absl::StrCat("no connection to ", peer, ": ", link.status().message()));
      }
      peer_rails.push_back({others->rails[k].name, *std::move(link)});
    }
    return std::make_unique<rails::Peer>(others->names[index], std::move(peer_rails), others->log);
  };
  reach.callers = [others] {
    std::vector<int> ranks;
    for (size_t k = 0; k < others->halls.size(); ++k) {
      for (const std::string& token : others->halls[k]->Tokens()) {
        const auto found = others->rank_with[k].find(token);
        if (found != others->rank_with[k].end()) ranks.push_back(found->second);
      }
    }
    return ranks;
  };
  return reach;
}

absl::StatusOr<bool> Setup::ExchangeOffers(const absl::Status& problem, Offer mine) {
  mine.news = News();
  absl::StatusOr<std::string> bytes = Encode(mine);
  if (!problem.ok()) bytes = problem;
  const absl::StatusOr<std::vector<std::string>> all =
      bootstrap_.Exchange(std::move(bytes), Deadline());
  if (!all.ok()) return all.status();
  offers_.clear();
  std::vector<std::string> news;
  for (const std::string& part : *all) {
    absl::StatusOr<Offer> offer = ParseOffer(part);
    if (!offer.ok()) return offer.status();
    news.push_back(std::exchange(offer->news, ""));
    offers_.push_back(*std::move(offer));
  }
  return Hear(news);
}

absl::Duration Setup::PatienceWith(const std::vector<Chosen>& rails) const {
  const absl::Duration timeout = options_.settings.StartTimeout();
  return rails.front().device != nullptr ? std::min(timeout, kLongestRdmaConnect) : timeout;
}

absl::Status Setup::Connect(const std::vector<Chosen>& rails, absl::Duration patience,
                            Links& links) {
  const absl::Time deadline = absl::Now() + patience;
  for (const int neighbour : neighbours_) {
    for (size_t k = 0; k < rails.size(); ++k) {
      absl::StatusOr<std::unique_ptr<Link>> link =
          rails[k].Open(halls_[k], HallOf(neighbour, k), bootstrap_.Describe(neighbour));
      links.push_back({link.ok() ? *std::move(link) : nullptr, link.status()});
    }
  }
  absl::Status result = ConnectAll(links, halls_, deadline, aborted_);
  for (size_t i = 0; i < links.size(); ++i) {
    if (links[i].result.ok()) continue;
    const std::string peer = bootstrap_.Describe(neighbours_[i / rails.size()]);
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
