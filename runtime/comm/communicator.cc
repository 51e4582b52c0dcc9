// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/communicator.h"

#include <algorithm>
#include <climits>
#include <numeric>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "fabric/gpu_direct.h"
#include "fabric/port_counters.h"
#include "runtime/base/background.h"
#include "runtime/base/descriptors.h"
#include "runtime/base/now.h"
#include "runtime/base/wire.h"
#include "runtime/bootstrap/bootstrap.h"
#include "runtime/collectives/recursive_doubling.h"
#include "runtime/comm/neighbours.h"
#include "runtime/comm/start.h"
#include "runtime/recorder/flight_file.h"

namespace railhead::comm {

using collectives::Algorithm;
using collectives::AllGatherFunction;
using collectives::AllReduceFunction;
using collectives::AllToAllFunction;
using collectives::Collective;
using collectives::Messenger;
using collectives::ReduceFunction;
using collectives::ReduceScatterFunction;
using collectives::RootedFunction;

namespace {

// Longer than ranks that finish together need; a rank that goes on working does not hold up one
// that leaves.
constexpr absl::Duration kLongestGoodbye = absl::Seconds(10);
// Longer than ranks that leave together need.
constexpr absl::Duration kShortGoodbye = absl::Milliseconds(100);
// Longer than a message needs over the last of several rails, the others having just died: NICs say
// so after 4 s at the latest.
constexpr absl::Duration kLongestSettling = absl::Seconds(8);

// What is wrong where a NIC does not read memory of GPUs.
constexpr absl::string_view kThroughTheHost = "what is sent from GPUs goes through the host: ";

// How much of an error is told to all, so that there is room for the report.
constexpr size_t kCauseBesideReport = 1200;

// Sends and receives are messages there as well, and so is an all-to-all of listed parts.
bool HasTextForSharedMemory(Collective collective) {
  return collective != Collective::kSendReceive;
}

// For messages: "" if the communicator has no name.
std::string OfCommunicator(const config::Settings& settings) {
  if (settings.comm_name.empty()) return "";
  return absl::StrCat("communicator '", settings.comm_name, "': ");
}

// In shared memory messages are copied twice, at about these costs.
tuner::Network SharedMemory() {
  tuner::Network network;
  network.alpha = 1e-6;
  network.beta = 1 / 4e9;
  return network;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Communicator>> Communicator::Create(CommunicatorOptions options) {
  const std::string of = OfCommunicator(options.setup.settings);
  absl::StatusOr<std::unique_ptr<Communicator>> created = Start(std::move(options));
  if (created.ok() || absl::StrContains(created.status().message(), of)) return created;
  return absl::Status(created.status().code(), absl::StrCat(of, created.status().message()));
}

absl::StatusOr<std::unique_ptr<Communicator>> Communicator::Start(CommunicatorOptions options) {
  std::unique_ptr<Communicator> comm(new Communicator());
  RaiseDescriptorLimit();
  const config::Rendezvous rendezvous = options.rendezvous;
  const std::string self = NameOfRank(options);
  const std::string group = GroupOf(options);
  if (options.abort != nullptr) {
    for (Halt* halt : {&options.hopeless, &options.aborted}) {
      *halt = [abort = options.abort, before = std::move(*halt)] {
        const absl::Status why = abort->why();
        return why.ok() ? CheckHalt(before) : why;
      };
    }
  }
  comm->of_ = OfCommunicator(options.setup.settings);
  const Logger log(
      options.setup.settings.log_level,
      absl::StrCat(self, comm->of_.empty() ? "" : ": ", absl::StripSuffix(comm->of_, ": ")));
  absl::StatusOr<bootstrap::Bootstrap> bootstrap = Join(options);
  if (!bootstrap.ok()) return bootstrap.status();

  comm->setup_ = std::move(options.setup);
  const config::Settings& settings = comm->setup_.settings;
  comm->rank_ = rendezvous.rank;
  comm->world_size_ = rendezvous.world_size;
  comm->self_ = self;
  if (auto files = fabric::RootFiles::Open(comm->setup_.root); files.ok()) comm->files_ = *files;
  comm->rejected_ = bootstrap->rejected_connections();
  comm->address_ = bootstrap->local_address().value_or(net::LikelyPublicAddress());

  absl::StatusOr<std::vector<tuner::Pin>> pins = tuner::ParsePins(settings.algorithms);
  if (!pins.ok()) {
    comm->setup_.problem.Update(
        absl::InvalidArgumentError(absl::StrCat("RAILHEAD_ALGO: ", pins.status().message())));
  }
  absl::StatusOr<Fabric> fabric = SetUp(*bootstrap, comm->setup_, options.aborted);
  if (!fabric.ok()) return fabric.status();
  comm->fabric_ = *std::move(fabric);
  comm->transport_ = comm->fabric_.rails.front().transport;
  comm->start_ = DescribeStart(comm->setup_, comm->fabric_, comm->world_size_);
  if (!comm->degraded_reason().empty()) {
    const bool allowed = comm->fabric_.decision.fallback == config::Fallback::kAllow;
    log.Write(allowed ? LogLevel::kInfo : LogLevel::kWarn,
              absl::StrCat("degraded: ", comm->degraded_reason()));
  }

  // Of a family's communicators, which have the same rails, the first says it.
  if (!comm->setup_.rank_in_metrics.has_value()) {
    for (const std::string& warning : comm->fabric_.warnings) log.Warn(warning);
    // Those of a single pod have chosen it.
    if (comm->rank_ == 0 && comm->fabric_.pods > 1 && !comm->fabric_.decision.flat_reason.empty()) {
      log.Warn(absl::StrCat("collectives do not use the memory inside pods: ",
                            comm->fabric_.decision.flat_reason));
    }
  }

  absl::StatusOr<std::unique_ptr<bootstrap::Watch>> watch =
      bootstrap::Watch::Start(*std::move(bootstrap));
  if (!watch.ok()) return watch.status();
  comm->watch_ = *std::move(watch);
  const StartAbort::Told told(options.abort, *comm->watch_);
  absl::StatusOr<std::unique_ptr<rails::Mesh>> mesh = rails::Mesh::Create(
      std::move(comm->fabric_.peers), {&comm->watch_->failed(), comm->watch_->event_fd()},
      comm->fabric_.reach ? comm->fabric_.reach(*comm->watch_) : rails::Reach());
  if (!mesh.ok()) return mesh.status();
  comm->mesh_ = *std::move(mesh);
  comm->patient_ = std::make_unique<Patient>(*comm->mesh_, comm->go_on_,
                                             [raw = comm.get()] { raw->watch_->Ask(); });
  if (comm->fabric_.segment.has_value() && !comm->fabric_.decision.shm) {
    Hierarchy::Options places;
    places.places = comm->fabric_.decision.places;
    places.rank = comm->rank_;
    places.crowded = comm->fabric_.decision.crowded;
    places.memory = comm->fabric_.segment->data();
    places.patience = {absl::ZeroDuration(), settings.timeout, &comm->watch_->failed()};
    places.patience.go_on = &comm->go_on_;
    absl::StatusOr<std::unique_ptr<Hierarchy>> hierarchy =
        Hierarchy::Create(std::move(places), *comm->patient_);
    if (!hierarchy.ok()) return comm->GiveUp("messages in shared memory", hierarchy.status());
    comm->hierarchy_ = *std::move(hierarchy);
  } else if (comm->fabric_.segment.has_value()) {
    comm->group_ =
        std::make_unique<shm::Group>(comm->fabric_.segment->data(), comm->rank_, comm->world_size_);
    comm->mailbox_ = std::make_unique<shm::Mailbox>(
        comm->fabric_.segment->data() + shm::Group::Bytes(comm->world_size_), comm->rank_,
        comm->fabric_.decision.places.front());
  }

  comm->over_verbs_ = comm->transport_ == "verbs" && comm->group_ == nullptr;

  comm->lookout_ = comm->MakeLookout(group, log);
  // Who is alone waits for nobody.
  if (comm->world_size_ > 1) comm->watch_->Attend(comm->lookout_.get());

  tuner::Network network = SharedMemory();
  if (comm->group_ == nullptr && comm->world_size_ > 1) {
    comm->patient_->Begin(settings.StartTimeout());
    absl::StatusOr<tuner::Network> measured =
        MeasureNetwork(*comm->patient_, comm->MeasuredRanks(), comm->hierarchy_.get());
    if (!measured.ok()) return comm->GiveUp("measuring the network", measured.status());
    network = *measured;
  }
  if (absl::Status followed = comm->CheckPins(*pins, network); !followed.ok()) {
    if (!options.made_of_another) return comm->GiveUp("RAILHEAD_ALGO", followed);
    // The job's pins are meant for all of it; some of its ranks go on without.
    if (comm->rank_ == 0) log.Warn(absl::StrCat("RAILHEAD_ALGO: ", followed.message()));
  }
  comm->autotuner_.emplace(tuner::Tuner(comm->world_size_, network, *std::move(pins)));

  if (settings.metrics && settings.metrics_port != 0) {
    const absl::StatusOr<std::shared_ptr<metrics::Board>> board =
        metrics::Board::At(settings.metrics_port, settings.pod);
    // Metrics are for people who look at the job; the job does not need them.
    if (board.ok()) {
      comm->notice_ = (*board)->Pin([raw = comm.get()] { return raw->Read(); });
    } else {
      log.Warn(board.status().message());
    }
  }
  log.Info(absl::StrCat(
      "connected over ", comm->transport_, " on ",
      absl::StrJoin(comm->fabric_.rails, ", ", [](std::string* out, const rails::RailName& name) {
        absl::StrAppend(out, rails::ToString(name));
      })));
  return comm;
}

Measurers Communicator::MeasuredRanks() const {
  Measurers ranks;
  ranks.rank = rank_;
  ranks.world_size = world_size_;
  ranks.partner = fabric_.partner;
  ranks.most_peers = MostPeers();
  return ranks;
}

int Communicator::MostPeers() const {
  uint64_t bytes_each = 0;
  for (const preflight::RailFacts& rail : fabric_.facts.rails) {
    if (rail.port.has_value()) bytes_each += rail.port->least_bytes;
  }
  // In smaller worlds there is a connection to each already.
  if (!over_verbs_ || bytes_each == 0 || world_size_ <= kAllConnected) return INT_MAX;
  return static_cast<int>(std::min<uint64_t>(fabric_.facts.memlock / bytes_each, INT_MAX));
}

absl::Status Communicator::CheckPins(const std::vector<tuner::Pin>& pins,
                                     const tuner::Network& network) const {
  // Who is alone does everything alike.
  if (world_size_ == 1) return absl::OkStatus();
  if (group_ == nullptr) {
    return tuner::CheckPins(pins, world_size_, network, fabric_.decision.flat_reason);
  }
  for (const tuner::Pin& pin : pins) {
    if (!HasTextForSharedMemory(pin.collective)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("'", Name(pin.collective), "=", Name(pin.algorithm),
                     "' cannot be followed: all ranks share memory, where there is one way, which "
                     "gives the same bits every time; unset it, or set RAILHEAD_TRANSPORT=tcp"));
  }
  return absl::OkStatus();
}

Communicator::~Communicator() {
  Depart(MonotonicNow() + kLongestGoodbye);
  if (watch_ != nullptr) watch_->Attend(nullptr);
  lane_.reset();
  mesh_.reset();
}

void Communicator::Leave(std::unique_ptr<Communicator> communicator) {
  if (communicator->Depart(MonotonicNow() + kShortGoodbye)) return;
  Communicator* const left = communicator.release();
  RunInBackground(MonotonicNow() + kLongestGoodbye + kShortGoodbye, [left] { delete left; });
}

absl::Status Communicator::Finalize() {
  const bool over = Depart(MonotonicNow() + setup_.settings.timeout);
  if (!failure_.ok()) return failure_;
  if (absl::Status verdict = watch_->verdict(); !verdict.ok()) {
    failure_ = absl::Status(
        verdict.code(),
        absl::StrCat(self_, ": ", of_, "rhCommFinalize was stopped: ", verdict.message()));
    return failure_;
  }
  if (over) return absl::OkStatus();
  return absl::DeadlineExceededError(
      absl::StrCat(self_, ": ", of_, "other ranks have neither finalized nor destroyed it within ",
                   absl::FormatDuration(setup_.settings.timeout)));
}

bool Communicator::Depart(absl::Time deadline) {
  notice_.reset();
  staging_.reset();
  if (watch_ == nullptr || mesh_ == nullptr || !failure_.ok()) return true;
  // Who has left needs nothing that this rank has sent.
  if (std::exchange(departed_, true) && watch_->Goodbye(absl::InfinitePast())) return true;
  // Leaving together: a link that closes while the other side still reads could lose its last
  // bytes.
  const absl::Time patience = std::min(deadline, MonotonicNow() + setup_.settings.timeout);
  const absl::Time settling = std::min(patience, MonotonicNow() + kLongestSettling);
  if (Lane* const transfers = lane(); transfers != nullptr) transfers->Settle(settling);
  mesh_->Settle(settling);
  return watch_->Goodbye(patience);
}

absl::Status Communicator::AllReduce(rhDataType_t type, rhRedOp_t op, const std::byte* send,
                                     std::byte* receive, size_t count) {
  const reduce::Reduction reduction = {type, op, world_size_, {}};
  const Work work =
      Choose({.collective = Collective::kAllReduce, .type = type, .op = op, .count = count},
             count * reduce::SizeOf(type));
  return Run(
      work,
      [&](shm::Group& group, const shm::Patience& patience) {
        return group.AllReduce(reduction, send, receive, count, patience);
      },
      [&](Hierarchy& hierarchy) {
        return hierarchy.AllReduce(work.call, AmongPlaces<AllReduceFunction>(work), reduction, send,
                                   receive, count);
      },
      [&](Messenger& messenger) {
        return AmongAll<AllReduceFunction>(work)(messenger, rank_, world_size_, reduction, send,
                                                 receive, count);
      });
}

absl::Status Communicator::AllGather(const std::byte* send, std::byte* receive,
                                     const Parts& parts) {
  const Work work = Choose({.collective = Collective::kAllGather,
                            .count = parts.total(),
                            .parts = collectives::DigestOf(parts)},
                           parts.total());
  return Run(
      work,
      [&](shm::Group& group, const shm::Patience& patience) {
        return group.AllGather(send, receive, parts, patience);
      },
      [&](Hierarchy& hierarchy) {
        return hierarchy.AllGather(work.call, AmongPlaces<AllGatherFunction>(work), send, receive,
                                   parts);
      },
      [&](Messenger& messenger) {
        return AmongAll<AllGatherFunction>(work)(messenger, rank_, world_size_, send, receive,
                                                 parts);
      });
}

absl::Status Communicator::ReduceScatter(rhDataType_t type, rhRedOp_t op, const std::byte* send,
                                         std::byte* receive, const Parts& parts) {
  const reduce::Reduction reduction = {type, op, world_size_, {}};
  const Work work = Choose({.collective = Collective::kReduceScatter,
                            .type = type,
                            .op = op,
                            .count = parts.total(),
                            .parts = collectives::DigestOf(parts)},
                           parts.total() * reduce::SizeOf(type));
  return Run(
      work,
      [&](shm::Group& group, const shm::Patience& patience) {
        return group.ReduceScatter(reduction, send, receive, parts, patience);
      },
      [&](Hierarchy& hierarchy) {
        return hierarchy.ReduceScatter(work.call, AmongPlaces<ReduceScatterFunction>(work),
                                       reduction, send, receive, parts);
      },
      [&](Messenger& messenger) {
        return AmongAll<ReduceScatterFunction>(work)(messenger, rank_, world_size_, reduction, send,
                                                     receive, parts);
      });
}

absl::Status Communicator::Broadcast(const std::byte* send, std::byte* receive, size_t bytes,
                                     int root) {
  const Work work =
      Choose({.collective = Collective::kBroadcast, .root = root, .count = bytes}, bytes);
  return Run(
      work,
      [&](shm::Group& group, const shm::Patience& patience) {
        return group.Broadcast(send, receive, bytes, root, patience);
      },
      [&](Hierarchy& hierarchy) {
        return hierarchy.Broadcast(work.call, AmongPlaces<RootedFunction>(work), send, receive,
                                   bytes, root);
      },
      [&](Messenger& messenger) {
        return AmongAll<RootedFunction>(work)(messenger, rank_, world_size_, root, send, receive,
                                              bytes);
      });
}

absl::Status Communicator::Reduce(rhDataType_t type, rhRedOp_t op, const std::byte* send,
                                  std::byte* receive, size_t count, int root) {
  const reduce::Reduction reduction = {type, op, world_size_, {}};
  const Work work = Choose(
      {.collective = Collective::kReduce, .type = type, .op = op, .root = root, .count = count},
      count * reduce::SizeOf(type));
  return Run(
      work,
      [&](shm::Group& group, const shm::Patience& patience) {
        return group.Reduce(reduction, send, receive, count, root, patience);
      },
      [&](Messenger& messenger) {
        return AmongAll<ReduceFunction>(work)(messenger, rank_, world_size_, root, reduction, send,
                                              receive, count);
      });
}

absl::Status Communicator::Barrier() {
  const Work work = Choose({.collective = Collective::kBarrier}, 0);
  // Over rails an all-reduce: nobody has the result of all before all have come.
  std::byte token{1};
  const reduce::Reduction reduction = {rhUint8, rhMax, 1, {}};
  return Run(
      work,
      [](shm::Group& group, const shm::Patience& patience) { return group.Barrier(patience); },
      [&](Hierarchy& hierarchy) {
        return hierarchy.AllReduce(work.call, AmongPlaces<AllReduceFunction>(work), reduction,
                                   &token, &token, 1);
      },
      [&](Messenger& messenger) {
        return AmongAll<AllReduceFunction>(work)(messenger, rank_, world_size_, reduction, &token,
                                                 &token, 1);
      });
}

absl::Status Communicator::AllToAll(const std::byte* send, const Parts& send_parts,
                                    std::byte* receive, const Parts& receive_parts) {
  // Where parts are listed, ranks need not agree on anything but on what each two exchange: that is
  // pairwise always.
  const bool equal = send_parts.equal() && receive_parts.equal();
  const size_t bytes = std::max(send_parts.total(), receive_parts.total());
  const collectives::Call::Arguments arguments = {.collective = Collective::kAllToAll,
                                                  .count = equal ? bytes : 0,
                                                  .number = recorder_.collectives()};
  const Work work = equal ? Choose(arguments, bytes)
                          : Work{Collective::kAllToAll, Algorithm::kPairwise, bytes,
                                 collectives::Call(arguments)};
  const auto over_messages = [&](Messenger& messenger) {
    return AmongAll<AllToAllFunction>(work)(messenger, rank_, send, send_parts, receive,
                                            receive_parts);
  };
  if (!equal) return Run(work, over_messages);
  return Run(
      work,
      [&](shm::Group& group, const shm::Patience& patience) {
        return group.AllToAll(send, receive, send_parts.largest(), patience);
      },
      over_messages);
}

absl::Status Communicator::Gather(const std::byte* send, std::byte* receive, size_t bytes,
                                  int root) {
  const Work work =
      Choose({.collective = Collective::kGather, .root = root, .count = bytes}, Ranks() * bytes);
  return Run(
      work,
      [&](shm::Group& group, const shm::Patience& patience) {
        return group.Gather(send, receive, bytes, root, patience);
      },
      [&](Messenger& messenger) {
        return AmongAll<RootedFunction>(work)(messenger, rank_, world_size_, root, send, receive,
                                              bytes);
      });
}

absl::Status Communicator::Scatter(const std::byte* send, std::byte* receive, size_t bytes,
                                   int root) {
  const Work work =
      Choose({.collective = Collective::kScatter, .root = root, .count = bytes}, Ranks() * bytes);
  return Run(
      work,
      [&](shm::Group& group, const shm::Patience& patience) {
        return group.Scatter(send, receive, bytes, root, patience);
      },
      [&](Messenger& messenger) {
        return AmongAll<RootedFunction>(work)(messenger, rank_, world_size_, root, send, receive,
                                              bytes);
      });
}

absl::Status Communicator::Transfer(absl::Span<const collectives::Transfer> transfers) {
  size_t bytes = 0;
  for (const collectives::Transfer& transfer : transfers) bytes += transfer.bytes;
  const collectives::Call call({.collective = Collective::kSendReceive});
  {
    const std::lock_guard<std::mutex> lock(awaiting_);
    awaited_.clear();
    for (const collectives::Transfer& transfer : transfers) {
      if (awaited_.size() < recorder::kMostAwaited) awaited_.push_back(transfer.peer);
    }
  }
  return Run(
      {Collective::kSendReceive, Algorithm::kDirect, bytes, call},
      [&](Messenger& messenger) { return collectives::RunTransfers(messenger, rank_, transfers); });
}

absl::Status Communicator::StartTransfer(std::shared_ptr<LaneTransfer> transfer) {
  if (watch_->failed()) return WhyFailed();
  Lane* transfers = nullptr;
  {
    const std::lock_guard<std::mutex> lock(lane_mutex_);
    if (lane_ == nullptr) {
      absl::StatusOr<std::unique_ptr<Lane>> started = StartLane();
      if (!started.ok()) return started.status();
      lane_ = *std::move(started);
    }
    transfers = lane_.get();
  }
  return transfers->Post(std::move(transfer));
}

size_t Communicator::UnfinishedTransfers() const {
  Lane* const transfers = lane();
  return transfers != nullptr ? transfers->unfinished() : 0;
}

absl::StatusOr<std::unique_ptr<Lane>> Communicator::StartLane() const {
  Lane::Options options;
  options.rank = rank_;
  options.world_size = world_size_;
  options.timeout = setup_.settings.timeout;
  options.alarm = {&watch_->failed(), watch_->event_fd()};
  if (fabric_.lane_reach) options.reach = fabric_.lane_reach(*watch_);
  if (fabric_.lane_memory != nullptr) {
    options.memory = fabric_.lane_memory;
    options.here = hierarchy_ != nullptr ? hierarchy_->here() : fabric_.decision.places.front();
  }
  options.name = [this](int rank) { return rank == rank_ ? self_ : absl::StrCat("rank ", rank); };
  options.left = [this](int rank) -> std::optional<std::string> {
    for (const bootstrap::Gone& gone : watch_->gone()) {
      if (gone.rank == rank) return gone.name;
    }
    return std::nullopt;
  };
  // Who is alone is not asked.
  options.all_answer = [this] { return world_size_ == 1 || lookout_->Ask(*watch_).all_answer; };
  options.fail = [this](const absl::Status& failure) {
    const std::string report =
        absl::IsDeadlineExceeded(failure) ? lookout_->Ask(*watch_).text : std::string();
    return Fail("transfers (rhIsend, rhIrecv)", failure, report);
  };
  return Lane::Start(std::move(options));
}

absl::Status Communicator::WhyFailed() const {
  const absl::Status verdict = watch_->verdict();
  return absl::Status(verdict.code(), absl::StrCat(self_, ": ", of_, verdict.message()));
}

absl::StatusOr<std::unique_ptr<Communicator>> Communicator::Split(int color, int key,
                                                                  const MakingOptions& options) {
  // Everybody makes a meeting place, since nobody knows yet who will be first in its group.
  absl::StatusOr<UniqueId> place = MakeUniqueId(address_);
  std::optional<net::Fd> listener;
  WireWriter writer;
  writer.U32(static_cast<uint32_t>(color));
  writer.U32(static_cast<uint32_t>(key));
  if (place.ok()) {
    listener = TakeListener(*place);
    writer.Raw(Encode(*place));
  } else {
    writer.Raw(std::string(kUniqueIdSize, '\0'));
  }
  const std::string mine = writer.Take();
  std::string all(Ranks() * mine.size(), '\0');
  absl::Status gathered =
      AllGather(reinterpret_cast<const std::byte*>(mine.data()),
                reinterpret_cast<std::byte*>(all.data()), Parts(Ranks(), all.size()));
  if (!gathered.ok()) return gathered;
  if (color < 0) return nullptr;

  std::vector<std::pair<int, int>> members;  // key, rank
  const auto entry = [&](int rank) {
    return absl::string_view(all).substr(static_cast<size_t>(rank) * mine.size(), mine.size());
  };
  for (int rank = 0; rank < world_size_; ++rank) {
    WireReader reader(entry(rank));
    if (static_cast<int>(reader.U32()) != color) continue;
    members.emplace_back(static_cast<int>(reader.U32()), rank);
  }
  std::sort(members.begin(), members.end());
  const int first = members.front().second;
  const absl::StatusOr<UniqueId> place_of_first =
      ParseUniqueId(entry(first).substr(mine.size() - kUniqueIdSize));
  if (!place_of_first.ok()) {
    return absl::UnavailableError(
        absl::StrCat(self_, ": rank ", first, " could not open a socket for its group"));
  }
  Meeting meeting;
  meeting.place = *place_of_first;
  meeting.listener = std::move(listener);
  for (const auto& [key_of_rank, member] : members) meeting.members.push_back(member);
  meeting.world_size = static_cast<int>(members.size());
  meeting.sound = true;
  meeting.setup = setup_;
  meeting.setup.rank_in_metrics = setup_.rank_in_metrics.value_or(rank_);
  return Meet(std::move(meeting), options);
}

absl::StatusOr<std::unique_ptr<Communicator>> Communicator::Shrink(const std::set<int>& excluded,
                                                                   const MakingOptions& options) {
  Meeting meeting;
  for (int rank = 0; rank < world_size_; ++rank) {
    if (excluded.count(rank) == 0) meeting.members.push_back(rank);
  }
  const auto first = static_cast<size_t>(meeting.members.front());
  const absl::StatusOr<std::optional<net::SocketAddress>> door =
      bootstrap::ParsePlace(fabric_.doors[first]);
  if (!door.ok() || !door->has_value()) {
    return absl::UnavailableError(absl::StrCat(
        self_, ": rank ", first, " had no socket open at which the others could meet it again"));
  }
  meeting.place.address = (*door)->address;
  meeting.place.port = (*door)->port;
  meeting.place.key = absl::StrCat(fabric_.door_key, first);
  if (meeting.members.front() == rank_) {
    meeting.listener = std::exchange(fabric_.door, std::nullopt);
  }
  meeting.world_size = static_cast<int>(meeting.members.size());
  meeting.setup = setup_;
  // The new one counts from nothing, under its own rank.
  notice_.reset();
  return Meet(std::move(meeting), options);
}

absl::StatusOr<std::unique_ptr<Communicator>> Communicator::Grow(const UniqueId& place,
                                                                 int world_size,
                                                                 const MakingOptions& options) {
  Meeting meeting;
  meeting.place = place;
  if (rank_ == 0) meeting.listener = TakeListener(place);
  meeting.members.resize(Ranks());
  std::iota(meeting.members.begin(), meeting.members.end(), 0);
  meeting.world_size = world_size;
  meeting.sound = watch_->verdict().ok();
  meeting.setup = setup_;
  // New ranks may be of another job; the id is the secret of all.
  meeting.setup.settings.job_secret = false;
  return Meet(std::move(meeting), options);
}

absl::StatusOr<std::unique_ptr<Communicator>> Communicator::Meet(
    Meeting meeting, const MakingOptions& making) const {
  absl::Status set = config::Configure(making.fields, meeting.setup.settings);
  if (!set.ok()) return set;
  const std::vector<int>& members = meeting.members;
  const auto self = std::find(members.begin(), members.end(), rank_) - members.begin();
  CommunicatorOptions options;
  options.rendezvous = {static_cast<int>(self), meeting.world_size,
                        meeting.place.address.ToString(), meeting.place.port};
  if (self == 0) options.listener = std::move(meeting.listener);
  options.key = meeting.place.key;
  options.setup = std::move(meeting.setup);
  options.made_of_another = true;
  options.abort = making.abort;
  options.hopeless = [&] { return WhyHopeless(members, meeting.sound); };
  options.aborted = [this] { return WhyAborted(); };
  return Create(std::move(options));
}

absl::Status Communicator::WhyAborted() const {
  if (!aborted_) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat(self_, ": rhCommAbort was called"));
}

absl::Status Communicator::WhyHopeless(const std::vector<int>& members, bool sound) const {
  if (absl::Status aborted = WhyAborted(); !aborted.ok()) return aborted;
  if (sound && watch_->failed()) return watch_->verdict();
  for (const bootstrap::Gone& gone : watch_->gone()) {
    if (std::find(members.begin(), members.end(), gone.rank) == members.end()) continue;
    return absl::UnavailableError(absl::StrCat(gone.name, " is gone: its connection was closed"));
  }
  return absl::OkStatus();
}

Communicator::Work Communicator::Choose(collectives::Call::Arguments arguments, size_t bytes) {
  arguments.number = recorder_.collectives();
  Work work = {arguments.collective, Algorithm::kSharedMemory, bytes, collectives::Call(arguments)};
  if (group_ != nullptr && HasTextForSharedMemory(arguments.collective)) return work;
  const std::lock_guard<std::mutex> lock(learning_);
  work.turn = autotuner_->Next(arguments.collective, bytes);
  work.algorithm = work.turn.choice.algorithm;
  return work;
}

absl::StatusOr<std::string> Communicator::Explain(absl::string_view collective,
                                                  size_t bytes) const {
  const auto* const name = std::find(collectives::kCollectiveNames.begin(),
                                     collectives::kCollectiveNames.end(), collective);
  if (name == collectives::kCollectiveNames.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("there is no collective '", collective,
                     "'; there are: ", absl::StrJoin(collectives::kCollectiveNames, ", ")));
  }
  const auto kind = static_cast<Collective>(name - collectives::kCollectiveNames.begin());
  if (kind == Collective::kSendReceive) return std::string("send_receive: there is one way\n");
  if (group_ != nullptr && HasTextForSharedMemory(kind)) {
    return absl::StrCat(collective, ": all ranks share memory\n");
  }
  const std::lock_guard<std::mutex> lock(learning_);
  std::string text = autotuner_->Explain(kind, bytes);
  if (const std::string& reason = unused_memory_reason(); !reason.empty()) {
    absl::StrAppend(&text, "  the memory inside pods is not used: ", reason, "\n");
  }
  return text;
}

absl::Status Communicator::Run(const Work& work, Shared shared, InPlaces in_places,
                               Messages messages) {
  if (work.algorithm != Algorithm::kHierarchical) return Run(work, shared, messages);
  return Measured(work, [&] { return in_places(*hierarchy_); });
}

absl::Status Communicator::Run(const Work& work, Shared shared, Messages messages) {
  if (group_ == nullptr) return Run(work, messages);
  group_->Expect(work.call, work.bytes);
  return Measured(work, [&] { return shared(*group_, SharedPatience()); });
}

absl::Status Communicator::Run(const Work& work, Messages messages) {
  return Measured(work, [&] { return Exchange(work, messages); });
}

absl::Status Communicator::Exchange(const Work& work, Messages messages) {
  if (mailbox_ != nullptr) {
    // Not all ranks that contradict each other exchange a message.
    if (work.collective != Collective::kSendReceive) {
      group_->Expect(work.call);
      if (absl::Status met = group_->Announce(SharedPatience()); !met.ok()) return met;
    }
    mailbox_->Begin(SharedPatience());
    mailbox_->Expect(work.call);
    return messages(*mailbox_);
  }
  patient_->Begin(setup_.settings.timeout);
  patient_->Expect(work.call);
  absl::Status status = messages(*patient_);
  return status.ok() ? patient_->Finish() : status;
}

absl::Status Communicator::Measured(const Work& work, absl::FunctionRef<absl::Status()> run) {
  if (!failure_.ok()) return failure_;
  const int64_t start = clock_.Now();
  const uint64_t number =
      recorder_.Begin(work.collective, work.algorithm, work.call, work.bytes, start, Moved());
  absl::Status status = Begin(work);
  if (status.ok()) status = run();
  const int64_t end = clock_.Now();
  if (status.ok()) status = Learn(work, static_cast<double>(end - start) * 1e-9);
  if (!status.ok()) {
    // Who hindered it is still to be seen now: nobody has been told to stop.
    const std::string report =
        absl::IsDeadlineExceeded(status) ? lookout_->Ask(*watch_).text : std::string();
    recorder_.End(recorder::State::kFailed, clock_.Now(), Moved());
    failure_ =
        Fail(absl::StrCat(Name(work.collective), " number ", number, " (", work.bytes, " bytes)"),
             status, report);
    return failure_;
  }
  recorder_.End(recorder::State::kDone, end, Moved());
  stats_.Record(work.collective, work.algorithm, work.bytes, end - start);
  return absl::OkStatus();
}

absl::Status Communicator::Learn(const Work& work, double seconds) {
  tuner::AlgorithmTrial* const trial = work.turn.trial;
  if (trial == nullptr) return absl::OkStatus();
  tuner::AlgorithmTrial::Times mine;
  {
    const std::lock_guard<std::mutex> lock(learning_);
    if (!trial->Record(seconds * work.turn.scale)) return absl::OkStatus();
    mine = trial->times();
  }
  tuner::AlgorithmTrial::Times all{};
  absl::Status agreed = Exchange(work, [&](Messenger& messenger) {
    return collectives::RecursiveDoublingAllReduce(
        messenger, rank_, world_size_, {rhFloat64, rhAvg, world_size_, {}},
        reinterpret_cast<const std::byte*>(mine.data()), reinterpret_cast<std::byte*>(all.data()),
        mine.size());
  });
  if (!agreed.ok()) return agreed;
  const std::lock_guard<std::mutex> lock(learning_);
  trial->Agree(all);
  return absl::OkStatus();
}

absl::Status Communicator::Begin(const Work& work) {
  // Sends and receives are not called by all.
  if (hierarchy_ == nullptr || work.collective == Collective::kSendReceive) return absl::OkStatus();
  return hierarchy_->Begin(work.call);
}

absl::Status Communicator::GiveUp(absl::string_view what, const absl::Status& cause) {
  if (failure_.ok()) failure_ = Fail(what, cause);
  return failure_;
}

shm::Patience Communicator::SharedPatience() const {
  return {group_->Look(), setup_.settings.timeout, &watch_->failed(), fabric_.decision.crowded,
          &go_on_,        &group_->spread()};
}

absl::Status Communicator::Fail(absl::string_view what, const absl::Status& cause,
                                absl::string_view report) const {
  const std::string where = absl::StrCat(self_, ": ", of_, what);
  if (absl::IsCancelled(cause)) {
    const absl::Status verdict = watch_->verdict();
    return absl::Status(verdict.code(), absl::StrCat(where, " was stopped: ", verdict.message()));
  }
  absl::Status own(cause.code(), absl::StrCat(where, ": ", cause.message()));
  absl::Status announced = own;
  if (!report.empty()) {
    announced = absl::Status(
        cause.code(), absl::StrCat(where, ": ", cause.message().substr(0, kCauseBesideReport),
                                   "; where the ranks are: ", report));
  }
  const absl::Status verdict = watch_->Announce(announced);
  if (verdict.message() == announced.message()) return announced;
  return absl::Status(verdict.code(),
                      absl::StrCat(verdict.message(), "; noticed as: ", own.message()));
}

std::vector<Flow> Communicator::Flows() const {
  std::vector<Flow> flows = mesh_->Flows();
  if (InMemory().has_value()) flows.push_back({-1, 0, *InMemory()});
  return flows;
}

std::optional<Traffic> Communicator::InMemory() const {
  if (hierarchy_ != nullptr) return hierarchy_->Moved();
  if (group_ == nullptr) return std::nullopt;
  return Traffic{group_->given_bytes() + mailbox_->given_bytes(),
                 group_->taken_bytes() + mailbox_->taken_bytes()};
}

Traffic Communicator::Moved() {
  // Where all ranks share memory the mesh carries nothing.
  if (group_ != nullptr) return *InMemory();
  Traffic moved = mesh_->Moved();
  moved += InMemory().value_or(Traffic());
  return moved;
}

std::unique_ptr<Lookout> Communicator::MakeLookout(const std::string& group,
                                                   const Logger& log) const {
  const config::Settings& settings = setup_.settings;
  Lookout::Options options;
  options.timeout = settings.timeout;
  options.about.job = settings.job;
  options.about.rank = rank_;
  options.about.world_size = world_size_;
  options.about.pod = settings.pod;
  options.about.node = settings.node;
  options.about.transport = transport_;
  for (const rails::RailName& name : fabric_.rails) {
    options.about.rails.push_back(rails::ToString(name));
  }
  if (!settings.flight_recorder.empty()) {
    options.path = absl::StrCat(settings.flight_recorder, "/", recorder::FileName(group, rank_));
  }
  options.recorder = &recorder_;
  options.flows = [this] { return Flows(); };
  options.tend = [this](absl::Time now) { mesh_->Tend(now); };
  options.awaited = [this] {
    const std::lock_guard<std::mutex> lock(awaiting_);
    return awaited_;
  };
  // Of a family's communicators, which have the same ports, the first says it.
  if (files_.has_value() && !setup_.rank_in_metrics.has_value()) {
    options.ports = [this] { return Ports(); };
  }
  options.log = log;
  return std::make_unique<Lookout>(std::move(options));
}

absl::StatusOr<Communicator::Registration> Communicator::Register(
    absl::Span<const std::byte> memory, const std::shared_ptr<const void>& owner) const {
  if (const device::CudaApi* const driver = cuda(); driver != nullptr) {
    const absl::StatusOr<std::optional<device::Memory>> gpu =
        device::Memory::Find(*driver, memory.data());
    if (!gpu.ok()) return gpu.status();
    if (gpu->has_value()) return RegisterGpu(memory, **gpu);
    const absl::StatusOr<bool> managed = device::Memory::IsManaged(*driver, memory.data());
    if (!managed.ok()) return managed.status();
    // The pages that a NIC would read are not where its values are, once a GPU has touched them.
    if (*managed) return Registration();
  }
  const Logger log(setup_.settings.log_level, self_);
  Registration registration;
  for (const auto& [rail, device] : fabric_.devices) {
    registration.push_back(device->Know(memory, owner, log));
  }
  return registration;
}

Communicator::Registration Communicator::RegisterGpu(absl::Span<const std::byte> memory,
                                                     const device::Memory& gpu) const {
  const Logger log(setup_.settings.log_level, self_);
  Registration registration;
  std::vector<KnownGpus::Way> ways;
  for (const rails::RailName& name : fabric_.rails) {
    const auto device = fabric_.devices.find(name.rail);
    if (name.transport != "verbs" || device == fabric_.devices.end()) continue;
    transport::verbs::KnownGpu known = device->second->KnowGpu(memory, gpu, log);
    const KnownGpus::Way& way =
        ways.emplace_back(KnownGpus::Way{{name, known.way}, std::move(known.trouble)});
    registration.push_back(std::move(known.known));
    if (!known_gpus_->IsNews(way.rail)) continue;
    if (known.way != fabric::GpuDirectWay::kNone) {
      log.Info(absl::StrCat(rails::ToString(name), ": its NIC reads memory of ", gpu.Name(), " by ",
                            fabric::ToString(known.way)));
    } else {
      const bool allowed = fabric_.decision.fallback == config::Fallback::kAllow;
      log.Write(allowed ? LogLevel::kInfo : LogLevel::kWarn,
                absl::StrCat("degraded: ", kThroughTheHost, way.trouble));
    }
  }
  registration.push_back(known_gpus_->Add(memory, gpu, std::move(ways)));
  return registration;
}

std::string Communicator::degraded_reason() const {
  std::string reason = fabric_.decision.degraded_reason;
  const std::string trouble = known_gpus_->Trouble();
  if (trouble.empty()) return reason;
  return absl::StrCat(reason, reason.empty() ? "" : "; ", self_, ": ", kThroughTheHost, trouble);
}

void Communicator::Abort(const std::string& reason) {
  aborted_ = true;
  Revoke(reason);
}

void Communicator::Revoke(const std::string& reason) {
  watch_->Announce(absl::AbortedError(absl::StrCat(self_, ": ", of_, reason))).IgnoreError();
}

std::vector<rails::RailTotals> Communicator::Rails() const {
  const Lane* const transfers = lane();
  if (group_ != nullptr) {
    Traffic moved = InMemory().value_or(Traffic());
    if (transfers != nullptr) moved += transfers->InMemory();
    rails::RailTotals memory = {fabric_.rails.front()};
    memory.transmit_bytes = moved.sent;
    memory.receive_bytes = moved.received;
    return {memory};
  }
  std::vector<rails::RailTotals> totals = mesh_->Totals();
  if (totals.empty()) {
    for (const rails::RailName& name : fabric_.rails) totals.push_back({name});
  }
  if (transfers == nullptr) return totals;
  const std::vector<rails::RailTotals> theirs = transfers->Totals();
  for (size_t i = 0; i < std::min(totals.size(), theirs.size()); ++i) {
    totals[i].transmit_bytes += theirs[i].transmit_bytes;
    totals[i].receive_bytes += theirs[i].receive_bytes;
    totals[i].retransmits += theirs[i].retransmits;
    totals[i].strangers += theirs[i].strangers;
  }
  return totals;
}

std::vector<metrics::PortSnapshot> Communicator::Ports() const {
  std::vector<metrics::PortSnapshot> ports;
  for (const rails::RailName& name : fabric_.rails) {
    if (!files_.has_value() || name.transport != "verbs") continue;
    ports.push_back({name, fabric::ReadPortCounters(*files_, name.device, name.port)});
  }
  return ports;
}

metrics::Snapshot Communicator::Read() const {
  metrics::Snapshot snapshot;
  snapshot.job = setup_.settings.job;
  snapshot.rank = setup_.rank_in_metrics.value_or(rank_);
  snapshot.degraded_reason = degraded_reason();
  snapshot.start = start_;
  snapshot.rejected_connections = rejected_;
  snapshot.rails = Rails();
  snapshot.ports = Ports();
  snapshot.gpu_direct = known_gpus_->Ways();
  snapshot.collectives = stats_.Read();
  for (metrics::KindCounts& kind : snapshot.collectives) kind.comm = setup_.settings.comm_name;
  return snapshot;
}

}  // namespace railhead::comm
