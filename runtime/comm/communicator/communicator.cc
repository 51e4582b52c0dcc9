// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/communicator/communicator.h"

#include <algorithm>
#include <climits>
#include <functional>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/printable_text.h"
#include "runtime/base/background.h"
#include "runtime/base/descriptors.h"
#include "runtime/base/now.h"
#include "runtime/bootstrap/bootstrap.h"
#include "runtime/comm/setup/neighbours.h"
#include "runtime/comm/setup/start.h"
#include "runtime/config/world.h"

namespace railhead::comm {
namespace {

// Longer than ranks need that finish at the same time. A rank that continues to work does not delay
// one that leaves.
constexpr absl::Duration kLongestGoodbye = absl::Seconds(10);
// Longer than ranks need that leave at the same time.
constexpr absl::Duration kShortGoodbye = absl::Milliseconds(100);
// Communicators that wait in the background for other ranks, each on a thread.
constexpr size_t kMostWaiting = 128;
// Longer than a message needs over the last of several rails, if the others have just failed: NICs
// report that within 4 s.
constexpr absl::Duration kLongestSettling = absl::Seconds(8);

// Drivers update an interface's counters every 2 s at the slowest.
constexpr absl::Duration kLaggingCounters = absl::Seconds(3);

// Maximum length of an error's text in a message that also contains the report or another error.
constexpr size_t kLongestCause = 1200;

// Prefix of messages; "" if the communicator has no name.
std::string OfCommunicator(const config::Settings& settings) {
  if (settings.comm_name.empty()) return "";
  return absl::StrCat("communicator '", settings.comm_name, "': ");
}

// Messages in shared memory are copied twice, at about these costs.
tuner::Network SharedMemory() {
  tuner::Network network;
  network.alpha = 1e-6;
  network.beta = 1 / 4e9;
  return network;
}

// This process's rank by the program that started it.
std::optional<metrics::WorldRank> LauncherWorld() {
  const absl::StatusOr<std::optional<config::World>> world =
      config::FindWorld(config::ProcessEnvironment);
  if (!world.ok() || !world->has_value()) return std::nullopt;
  return metrics::WorldRank{(*world)->rank, (*world)->size};
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
  comm->LogStart(log);

  bootstrap::SilenceLimits limits;
  limits.farewell = std::min(limits.farewell, settings.timeout / 4);
  absl::StatusOr<std::unique_ptr<bootstrap::Watch>> watch =
      bootstrap::Watch::Start(*std::move(bootstrap), limits);
  if (!watch.ok()) return watch.status();
  comm->watch_ = *std::move(watch);
  const StartAbort::Told told(options.abort, [watch = comm->watch_.get()](const absl::Status& why) {
    watch->Announce(why).IgnoreError();
  });
  rails::Reach reach;
  // If all ranks share memory, the mesh never sleeps.
  if (comm->fabric_.reach != nullptr) reach = comm->fabric_.reach(*comm->watch_);
  absl::StatusOr<std::unique_ptr<rails::Mesh>> mesh = rails::Mesh::Create(
      std::move(comm->fabric_.peers), {&comm->watch_->failed()}, std::move(reach));
  if (!mesh.ok()) return mesh.status();
  comm->paths_.mesh = *std::move(mesh);
  comm->paths_.patient = std::make_unique<Patient>(*comm->paths_.mesh, comm->go_on_,
                                                   [raw = comm.get()] { raw->watch_->Ask(); });
  comm->MakeHelpers();
  if (absl::Status shared = comm->UseSharedMemory(); !shared.ok()) {
    return comm->GiveUp("messages in shared memory", shared);
  }
  comm->paths_.over_verbs = comm->transport_ == "verbs" && comm->paths_.group == nullptr;

  comm->hang_reporter_ = comm->MakeHangReporter(group, log);
  // A single rank waits for no other.
  if (comm->world_size_ > 1) {
    comm->watch_->Attend(comm->hang_reporter_.get());
    if (comm->fabric_.lane_reach != nullptr) {
      comm->lane_reach_ = std::exchange(comm->fabric_.lane_reach, nullptr)(*comm->watch_);
    }
    absl::StatusOr<std::unique_ptr<Tender>> tender = Tender::Start(
        rails::Mesh::kTendPause, [raw = comm.get()](absl::Time now) { raw->Tend(now); });
    if (!tender.ok()) return comm->GiveUp("the progress thread", tender.status());
    comm->tender_ = *std::move(tender);
  }

  if (absl::Status tuned = comm->StartTuner(*std::move(pins), options.made_of_another, log);
      !tuned.ok()) {
    return tuned;
  }
  // Communicators of a family have the same rails; the first one checks them.
  if (!comm->setup_.split_off) {
    for (const std::string& warning : comm->fabric_.wires.Check(comm->Rails(), kLaggingCounters)) {
      log.Warn(warning);
    }
  }
  // Also for those that the page omits: the first one decides for all.
  comm->identity_ =
      metrics::IdentityOfProcess(settings.job, LauncherWorld(), {comm->rank_, comm->world_size_});
  if (settings.metrics && settings.metrics_port != 0) comm->PublishMetrics(log);
  log.Info(absl::StrCat(
      "connected over ", comm->transport_, " on ",
      absl::StrJoin(comm->fabric_.rails, ", ", [](std::string* out, const rails::RailName& name) {
        absl::StrAppend(out, rails::ToString(name));
      })));
  return comm;
}

void Communicator::MakeHelpers() {
  CallExecutor::Options options;
  options.rank = rank_;
  options.world_size = world_size_;
  options.timeout = setup_.settings.timeout;
  options.crowded = fabric_.decision.crowded;
  options.failed = &watch_->failed();
  options.go_on = &go_on_;
  options.report = [this] { return hang_reporter_->Report(*watch_); };
  options.fail = [this](absl::string_view what, const absl::Status& cause,
                        absl::string_view report) { return Fail(what, cause, report); };
  executor_ = std::make_unique<CallExecutor>(paths_, std::move(options));
  memory_.emplace(
      DirectMemory::Owner{rank_, world_size_, self_, setup_, fabric_, paths_, *watch_, *executor_});
  family_.emplace(Family::Parent{rank_, world_size_, self_, setup_, fabric_, *watch_, aborted_,
                                 *executor_, address_});
}

void Communicator::LogStart(const Logger& log) const {
  // The other reasons log themselves.
  if (const std::string& reason = fabric_.decision.degraded_reason; !reason.empty()) {
    const bool allowed = fabric_.decision.fallback == config::Fallback::kAllow;
    log.Write(allowed ? LogLevel::kInfo : LogLevel::kWarn, absl::StrCat("degraded: ", reason));
  }

  // Communicators of a family have the same rails; the first one logs them.
  if (!setup_.split_off) {
    for (const std::string& warning : fabric_.warnings) log.Warn(warning);
    // Within a single pod, the user has chosen this.
    if (rank_ == 0 && fabric_.pods > 1 && !fabric_.decision.flat_reason.empty()) {
      log.Warn(absl::StrCat("collectives do not use shared memory inside pods: ",
                            fabric_.decision.flat_reason));
    }
  }
}

absl::Status Communicator::UseSharedMemory() {
  if (fabric_.segment.has_value() && !fabric_.decision.shm) {
    Hierarchy::Options places;
    places.places = fabric_.decision.places;
    places.rank = rank_;
    places.crowded = fabric_.decision.crowded;
    places.memory = fabric_.segment->data();
    places.patience = {absl::ZeroDuration(), setup_.settings.timeout, &watch_->failed()};
    places.patience.go_on = &go_on_;
    absl::StatusOr<std::unique_ptr<Hierarchy>> hierarchy =
        Hierarchy::Create(std::move(places), *paths_.patient);
    if (!hierarchy.ok()) return hierarchy.status();
    paths_.hierarchy = *std::move(hierarchy);
  } else if (fabric_.segment.has_value()) {
    paths_.group = std::make_unique<shm::Group>(fabric_.segment->data(), rank_, world_size_);
    paths_.mailbox =
        std::make_unique<shm::Mailbox>(fabric_.segment->data() + shm::Group::Bytes(world_size_),
                                       rank_, fabric_.decision.places.front());
  }
  return absl::OkStatus();
}

absl::Status Communicator::StartTuner(std::vector<tuner::Pin> pins, bool made_of_another,
                                      const Logger& log) {
  tuner::Network network = SharedMemory();
  if (paths_.group == nullptr && world_size_ > 1) {
    // All ranks have met, so none of them has yet to call.
    const std::function<bool()> never = [] { return false; };
    const absl::Status measured = executor_->OverRails(
        setup_.settings.StartTimeout(),
        [&](collectives::Messenger& messenger) -> absl::Status {
          absl::StatusOr<tuner::Network> result =
              MeasureNetwork(messenger, MeasuredRanks(), paths_.hierarchy.get());
          if (result.ok()) network = *result;
          return result.status();
        },
        &never);
    if (!measured.ok()) return GiveUp("measuring the network", measured);
  }
  if (absl::Status followed = CheckPins(pins, network); !followed.ok()) {
    if (!made_of_another) return GiveUp("RAILHEAD_ALGO", followed);
    // The job's overrides are for all its ranks; this communicator lacks some of them and continues
    // without the override.
    if (rank_ == 0) log.Warn(absl::StrCat("RAILHEAD_ALGO: ", followed.message()));
  }
  executor_->Use(tuner::Tuner(world_size_, network, std::move(pins)));
  return absl::OkStatus();
}

void Communicator::PublishMetrics(const Logger& log) {
  const absl::StatusOr<std::shared_ptr<metrics::Exporter>> exporter =
      metrics::Exporter::At(setup_.settings.metrics_port, setup_.settings.pod, log);
  // Metrics are optional: the job continues without them.
  if (exporter.ok()) {
    metrics_ = (*exporter)->Register([this] { return Read(); });
  } else {
    log.Warn(exporter.status().message());
  }
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
  // In smaller worlds all ranks are mostly connected already.
  const bool connected = world_size_ <= kAllConnected && !fabric_.decision.all_met;
  if (!paths_.over_verbs || bytes_each == 0 || connected) return INT_MAX;
  return static_cast<int>(std::min<uint64_t>(fabric_.facts.memlock / bytes_each, INT_MAX));
}

absl::Status Communicator::CheckPins(const std::vector<tuner::Pin>& pins,
                                     const tuner::Network& network) const {
  // With a single rank, all algorithms are equal.
  if (world_size_ == 1) return absl::OkStatus();
  if (paths_.group == nullptr) {
    return tuner::CheckPins(pins, world_size_, network, fabric_.decision.flat_reason);
  }
  for (const tuner::Pin& pin : pins) {
    if (!CallExecutor::IsDoneInMemory(pin.collective)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "'", Name(pin.collective), "=", Name(pin.algorithm),
        "' cannot be followed: all ranks share memory, where there is only one algorithm, "
        "with bit-identical results; unset it, or set RAILHEAD_TRANSPORT=tcp"));
  }
  return absl::OkStatus();
}

Communicator::~Communicator() {
  const absl::Time deadline = MonotonicNow() + kLongestGoodbye;
  Depart(deadline, deadline);
  if (watch_ != nullptr) watch_->Attend(nullptr);
  tender_.reset();
  if (lane_ != nullptr) lane_->Close();
  lane_.reset();
  paths_.mesh.reset();
}

void Communicator::Leave(std::unique_ptr<Communicator> communicator) {
  // While ranks that leave an earlier one are waited for, they are elsewhere: a program that
  // destroys a hundred communicators in another order than they do waits once, not a hundred times.
  const size_t waiting = BackgroundJobs();
  const absl::Time now = MonotonicNow();
  const bool waits = waiting == 0 || waiting >= kMostWaiting;
  if (communicator->Depart(now + kShortGoodbye, waits ? now + kShortGoodbye : now)) return;
  Communicator* const left = communicator.release();
  RunInBackground(MonotonicNow() + kLongestGoodbye + kShortGoodbye, [left] { delete left; });
}

absl::Status Communicator::Finalize() {
  const absl::Time deadline = MonotonicNow() + setup_.settings.timeout;
  const bool over = Depart(deadline, deadline);
  if (!executor_->failure().ok()) return executor_->failure();
  if (absl::Status verdict = watch_->verdict(); !verdict.ok()) {
    return executor_->Fail(absl::Status(
        verdict.code(),
        absl::StrCat(self_, ": ", of_, "rhCommFinalize was stopped: ", verdict.message())));
  }
  if (over) return absl::OkStatus();
  return absl::DeadlineExceededError(
      absl::StrCat(self_, ": ", of_, "other ranks have neither finalized nor destroyed it within ",
                   absl::FormatDuration(setup_.settings.timeout)));
}

bool Communicator::Depart(absl::Time settled_by, absl::Time others_left_by) {
  metrics_.reset();
  identity_.reset();
  if (executor_ == nullptr) return true;
  memory_->ReleaseStaging();
  if (!executor_->failure().ok()) return true;
  // Ranks that have left need nothing that this rank has sent.
  if (std::exchange(departed_, true) && watch_->Goodbye(absl::InfinitePast())) return true;
  paths_.mesh->ExpectClose();
  // Leave together: a link that closes while the peer still reads could lose its last bytes.
  const absl::Time now = MonotonicNow();
  const absl::Duration longest = setup_.settings.timeout;
  const absl::Time settling = std::min(settled_by, now + std::min(longest, kLongestSettling));
  if (Lane* const transfers = lane(); transfers != nullptr) transfers->Settle(settling);
  paths_.mesh->Settle(settling);
  return watch_->Goodbye(std::min(others_left_by, now + longest));
}

absl::Status Communicator::WhyFailed() const {
  const absl::Status verdict = watch_->verdict();
  return absl::Status(verdict.code(), absl::StrCat(self_, ": ", of_, verdict.message()));
}

absl::Status Communicator::GiveUp(absl::string_view what, const absl::Status& cause) {
  return executor_->Fail(what, cause);
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
        cause.code(), absl::StrCat(where, ": ", PrintableText(cause.message(), kLongestCause),
                                   "; where the ranks are: ", report));
  }
  const absl::Status verdict = watch_->Announce(announced);
  if (verdict.message() == announced.message()) return announced;
  return absl::Status(verdict.code(), absl::StrCat(verdict.message(), "; noticed as: ",
                                                   PrintableText(own.message(), kLongestCause)));
}

void Communicator::Abort(const std::string& reason) {
  aborted_ = true;
  Revoke(reason);
}

void Communicator::Revoke(const std::string& reason) {
  watch_->Announce(absl::AbortedError(absl::StrCat(self_, ": ", of_, reason))).IgnoreError();
}

}  // namespace railhead::comm
