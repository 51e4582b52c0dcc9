// SPDX-License-Identifier: Apache-2.0
//
// Communicators of the C API: check the arguments, turn a Status into a result code, and keep its
// text. No exception leaves them.
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/printable_text.h"
#include "railhead/railhead.h"
#include "runtime/base/caught.h"
#include "runtime/base/thread.h"
#include "runtime/comm/api/arguments.h"
#include "runtime/comm/api/calls.h"
#include "runtime/comm/api/config.h"
#include "runtime/comm/api/handle.h"
#include "runtime/comm/communicator/communicator.h"
#include "runtime/comm/setup/rdma_rail.h"
#include "runtime/comm/setup/unique_id.h"
#include "runtime/config/env.h"
#include "runtime/shm/segment_server.h"

// NOLINTBEGIN(readability-identifier-naming): these names are the C API.

namespace railhead::comm {

absl::StatusOr<CommunicatorOptions> ReadOptions(const config::Fields& fields) {
  CommunicatorOptions options;
  config::Settings& settings = options.setup.settings;
  options.setup.problem = config::ReadSettings(config::ProcessEnvironment, settings);
  if (absl::Status wrong = config::Configure(fields, settings); !wrong.ok()) return wrong;
  options.setup.problem.Update(config::CheckSettings(settings));
  const transport::VerbsSettings verbs = {static_cast<uint8_t>(settings.ib_traffic_class),
                                          static_cast<uint8_t>(settings.ib_service_level),
                                          static_cast<uint16_t>(settings.ib_pkey),
                                          static_cast<uint8_t>(settings.ib_qps_per_rail)};
  options.setup.open_rdma_rail = [verbs](const fabric::PodRail& rail) {
    return OpenVerbsRail(rail, verbs);
  };
  options.setup.place = shm::PlaceOfProcess();
  options.setup.cuda = std::make_shared<device::LoadedCuda>();
  return options;
}

}  // namespace railhead::comm

namespace {

using railhead::Caught;
using railhead::comm::CannotAsk;
using railhead::comm::CannotUse;
using railhead::comm::Communicator;
using railhead::comm::CommunicatorOptions;
using railhead::comm::Config;
using railhead::comm::Guard;
using railhead::comm::MakingOptions;
using railhead::comm::NullArgument;
using railhead::comm::ReadOptions;
using railhead::comm::Report;
using railhead::comm::WrongArgument;
using Phase = rhComm::Phase;

rhComm_t Wrap(std::unique_ptr<Communicator> communicator) {
  auto result = std::make_unique<rhComm>();
  result->communicator = std::move(communicator);
  return result.release();
}

rhResult_t Create(CommunicatorOptions options, rhComm_t* comm) {
  absl::StatusOr<std::unique_ptr<Communicator>> created = Communicator::Create(std::move(options));
  if (!created.ok()) return Report(nullptr, created.status());
  *comm = Wrap(*std::move(created));
  return rhSuccess;
}

using Made = absl::StatusOr<std::unique_ptr<Communicator>>;

// Turns exceptions (out of memory, no thread) into a status.
template <class Body>
Made MadeBy(Body body) noexcept {
  return Caught(body, [](const absl::Status& why) -> Made { return why; });
}

// Gives a communicator in progress the result of its start. A waiting thread may delete it
// afterwards.
void Hand(rhComm_t comm, Made made) {
  bool abandoned = false;
  {
    const std::lock_guard<std::mutex> lock(comm->state);
    abandoned = comm->abandoned;
    comm->came_to = railhead::comm::ResultOf(made.status());
    comm->verdict = railhead::PrintableText(made.status().message());
    const bool there = made.ok();
    if (there) comm->communicator = *std::move(made);
    comm->phase.store(there ? Phase::kReady : Phase::kNotStarted, std::memory_order_release);
    comm->left_stream.notify_all();
  }
  if (!abandoned) return;
  if (comm->communicator != nullptr) comm->communicator->Abort("rhCommAbort was called");
  delete comm;
}

std::unique_ptr<rhComm> NewInProgress() {
  auto starting = std::make_unique<rhComm>();
  starting->blocking = false;
  starting->phase = Phase::kStarting;
  starting->start_abort = std::make_shared<railhead::comm::StartAbort>();
  return starting;
}

rhResult_t CreateInBackground(CommunicatorOptions options, rhComm_t* comm) {
  std::unique_ptr<rhComm> starting = NewInProgress();
  options.abort = starting->start_abort;
  starting->background =
      railhead::StartThread([raw = starting.get(), options = std::move(options)]() mutable {
        Hand(raw, MadeBy([&] { return Communicator::Create(std::move(options)); }));
      });
  *comm = starting.release();
  return rhInProgress;
}

// Returns an error if transfers are not done: the library still uses their buffers.
rhResult_t TransfersLeft(const char* call, rhComm_t comm) {
  // Transfers of a failed job are ending.
  if (comm->communicator == nullptr || !comm->communicator->verdict().ok()) return rhSuccess;
  const size_t left = comm->communicator->UnfinishedTransfers();
  if (left == 0) return rhSuccess;
  return Report(
      comm, rhInvalidUsage,
      absl::StrCat(call, ": ", left,
                   " transfers of rhIsend and rhIrecv are not done; wait for them, or use "
                   "rhCommAbort to end them"));
}

// Ends the communicator after all its queued calls. rhCommAbort waits for this.
rhResult_t Finalize(rhComm_t comm) {
  {
    std::unique_lock<std::mutex> state(comm->state);
    comm->left_stream.wait(state, [&] { return comm->on_stream == 0; });
  }
  const rhResult_t result = Guard(comm, [&] {
    const std::lock_guard<std::mutex> use(comm->in_use);
    return Report(comm, comm->communicator->Finalize());
  });
  const std::lock_guard<std::mutex> state(comm->state);
  comm->came_to = result;
  comm->phase.store(Phase::kEnded, std::memory_order_release);
  comm->left_stream.notify_all();
  return result;
}

void Join(std::thread& thread) {
  if (thread.joinable()) thread.join();
}

absl::StatusOr<railhead::comm::UniqueId> ParseId(const rhUniqueId& id) {
  return railhead::comm::ParseUniqueId(absl::string_view(id.internal, sizeof id.internal));
}

rhResult_t Init(const char* call, rhComm_t* comm, int nranks, const rhUniqueId& id, int rank,
                const rhConfig_t* config) {
  if (comm == nullptr) return NullArgument(nullptr, call, "comm");
  *comm = nullptr;
  if (nranks < 1 || rank < 0 || rank >= nranks) {
    return Report(nullptr, rhInvalidArgument,
                  absl::StrCat(call, ": rank ", rank, " of ", nranks,
                               " does not exist; ranks go from 0 to nranks-1"));
  }
  const absl::StatusOr<railhead::comm::UniqueId> parsed = ParseId(id);
  if (!parsed.ok()) return Report(nullptr, parsed.status());
  const absl::StatusOr<Config> set = railhead::comm::ReadConfig(config);
  if (!set.ok()) return WrongArgument(nullptr, call, set.status());
  absl::StatusOr<CommunicatorOptions> options = ReadOptions(set->fields);
  if (!options.ok()) return WrongArgument(nullptr, call, options.status());
  options->rendezvous = {rank, nranks, parsed->address.ToString(), parsed->port};
  options->key = parsed->key;
  if (rank == 0) options->listener = railhead::comm::TakeListener(*parsed);
  return set->blocking.value_or(true) ? Create(*std::move(options), comm)
                                      : CreateInBackground(*std::move(options), comm);
}

// Ends a phase in progress of a communicator that can be used afterwards.
void MakeReady(rhComm_t comm) {
  const std::lock_guard<std::mutex> lock(comm->state);
  comm->phase.store(Phase::kReady, std::memory_order_release);
  comm->left_stream.notify_all();
}

using Make = std::function<Made(Communicator& communicator, const MakingOptions& options)>;

// Runs on the thread that creates one communicator from another. `newcomm` is in progress, or null
// if this rank gets no communicator.
void MakeInBackground(rhComm_t comm, rhComm_t newcomm, const MakingOptions& options,
                      const Make& make) {
  Made made = nullptr;
  {
    const std::lock_guard<std::mutex> use(comm->in_use);
    made = MadeBy([&] { return make(*comm->communicator, options); });
    Report(comm, made.status());
  }
  MakeReady(comm);
  // Last: who sees that it is there may use `comm`.
  if (newcomm != nullptr) Hand(newcomm, std::move(made));
}

// Creates one communicator from another, which no other call may use until then. `joins`: this rank
// gets a communicator.
rhResult_t MakeAnother(const char* call, rhComm_t comm, rhComm_t* newcomm, const rhConfig_t* config,
                       bool joins, const Make& make) {
  const absl::StatusOr<Config> set = railhead::comm::ReadConfig(config);
  absl::Status wrong = set.status();
  if (set.ok()) {
    railhead::config::Settings settings = comm->communicator->settings();
    wrong = railhead::config::Configure(set->fields, settings);
    wrong.Update(railhead::config::CheckSettings(settings));
  }
  if (!wrong.ok()) return WrongArgument(comm, call, wrong);
  MakingOptions options = {set->fields, nullptr};
  if (set->blocking.value_or(comm->blocking)) {
    Made made = nullptr;
    const rhResult_t result = railhead::comm::RunNow(call, comm, [&](Communicator& communicator) {
      made = make(communicator, options);
      return made.status();
    });
    if (result == rhSuccess && *made != nullptr) *newcomm = Wrap(*std::move(made));
    return result;
  }
  // Like other calls, it does not wait for running ones.
  const rhResult_t free =
      railhead::comm::RunNow(call, comm, [](Communicator&) { return absl::OkStatus(); });
  if (free != rhSuccess) return free;
  std::unique_ptr<rhComm> starting = joins ? NewInProgress() : nullptr;
  if (starting != nullptr) options.abort = starting->start_abort;
  Join(comm->background);
  comm->phase.store(Phase::kMaking, std::memory_order_release);
  try {
    comm->background = railhead::StartThread([comm, raw = starting.get(), options, make] {
      MakeInBackground(comm, raw, options, make);
    });
  } catch (const std::exception&) {
    MakeReady(comm);
    throw;
  }
  *newcomm = starting.release();
  return rhInProgress;
}

}  // namespace

rhResult_t rhGetUniqueId(rhUniqueId* id) {
  return Guard(nullptr, [&] {
    if (id == nullptr) return NullArgument(nullptr, "rhGetUniqueId", "id");
    railhead::config::Settings settings;
    absl::Status read =
        railhead::config::ReadSettings(railhead::config::ProcessEnvironment, settings);
    if (!read.ok()) return Report(nullptr, read);
    absl::StatusOr<railhead::net::IpAddress> address = railhead::net::LikelyPublicAddress();
    if (!settings.socket_ifname.empty()) {
      address = railhead::net::AddressOfInterface(settings.socket_ifname);
      // The interface of rail 0 may be down.
      for (const std::string& name : settings.more_socket_ifnames) {
        if (!address.ok()) address = railhead::net::AddressOfInterface(name);
      }
    }
    if (!address.ok()) return Report(nullptr, address.status());
    const absl::StatusOr<railhead::comm::UniqueId> made = railhead::comm::MakeUniqueId(*address);
    if (!made.ok()) return Report(nullptr, made.status());
    const std::string bytes = Encode(*made);
    static_assert(sizeof id->internal == railhead::comm::kUniqueIdSize);
    std::memcpy(id->internal, bytes.data(), sizeof id->internal);
    return rhSuccess;
  });
}

rhResult_t rhCommInitRank(rhComm_t* comm, int nranks, rhUniqueId id, int rank) {
  return Guard(nullptr, [&] { return Init("rhCommInitRank", comm, nranks, id, rank, nullptr); });
}

rhResult_t rhCommInitRankConfig(rhComm_t* comm, int nranks, rhUniqueId id, int rank,
                                rhConfig_t* config) {
  return Guard(nullptr,
               [&] { return Init("rhCommInitRankConfig", comm, nranks, id, rank, config); });
}

rhResult_t rhCommInitFromEnv(rhComm_t* comm) {
  return Guard(nullptr, [&] {
    if (comm == nullptr) return NullArgument(nullptr, "rhCommInitFromEnv", "comm");
    *comm = nullptr;
    absl::StatusOr<CommunicatorOptions> options = ReadOptions();
    if (!options.ok()) return Report(nullptr, options.status());
    absl::StatusOr<railhead::config::Rendezvous> rendezvous =
        railhead::config::ReadRendezvous(railhead::config::ProcessEnvironment);
    if (!rendezvous.ok()) return Report(nullptr, rendezvous.status());
    options->rendezvous = *std::move(rendezvous);
    return Create(*std::move(options), comm);
  });
}

rhResult_t rhCommSplit(rhComm_t comm, int color, int key, rhComm_t* newcomm, rhConfig_t* config) {
  return Guard(comm, [&] {
    if (const rhResult_t cannot = CannotUse("rhCommSplit", comm); cannot != rhSuccess) {
      return cannot;
    }
    if (newcomm == nullptr) return NullArgument(comm, "rhCommSplit", "newcomm");
    *newcomm = nullptr;
    if (color < 0 && color != RH_SPLIT_NOCOLOR) {
      return Report(comm, rhInvalidArgument,
                    absl::StrCat("rhCommSplit: color ", color,
                                 " is negative; use RH_SPLIT_NOCOLOR to be in no group"));
    }
    return MakeAnother("rhCommSplit", comm, newcomm, config, color >= 0,
                       [color, key](Communicator& communicator, const MakingOptions& options) {
                         return communicator.family().Split(color, key, options);
                       });
  });
}

rhResult_t rhCommShrink(rhComm_t comm, const int* exclude_ranks, int exclude_count,
                        rhComm_t* newcomm, rhConfig_t* config) {
  return Guard(comm, [&] {
    if (const rhResult_t cannot = CannotUse("rhCommShrink", comm); cannot != rhSuccess) {
      return cannot;
    }
    if (newcomm == nullptr) return NullArgument(comm, "rhCommShrink", "newcomm");
    *newcomm = nullptr;
    if (exclude_count < 0) {
      return Report(comm, rhInvalidArgument,
                    absl::StrCat("rhCommShrink: exclude_count ", exclude_count, " is negative"));
    }
    if (exclude_ranks == nullptr && exclude_count > 0) {
      return NullArgument(comm, "rhCommShrink", "exclude_ranks");
    }
    const std::set<int> excluded(exclude_ranks, exclude_ranks + exclude_count);
    for (const int rank : excluded) {
      const absl::Status wrong =
          railhead::comm::WrongRoot(rank, comm->communicator->world_size(), "exclude_ranks:");
      if (!wrong.ok()) {
        return Report(comm, rhInvalidArgument, absl::StrCat("rhCommShrink: ", wrong.message()));
      }
    }
    if (excluded.count(comm->communicator->rank()) > 0) {
      return Report(comm, rhInvalidArgument,
                    "rhCommShrink: this rank is among exclude_ranks; only those that are left call "
                    "it");
    }
    return MakeAnother("rhCommShrink", comm, newcomm, config, true,
                       [excluded](Communicator& communicator, const MakingOptions& options) {
                         communicator.Unpublish();
                         return communicator.family().Shrink(excluded, options);
                       });
  });
}

rhResult_t rhCommGrow(rhComm_t comm, int nranks, rhUniqueId id, int rank, rhComm_t* newcomm,
                      rhConfig_t* config) {
  return Guard(comm, [&] {
    if (newcomm == nullptr) return NullArgument(comm, "rhCommGrow", "newcomm");
    *newcomm = nullptr;
    if (comm == nullptr) return Init("rhCommGrow", newcomm, nranks, id, rank, config);
    if (const rhResult_t cannot = CannotUse("rhCommGrow", comm); cannot != rhSuccess) return cannot;
    const int old = comm->communicator->world_size();
    if (rank != -1 || nranks < old) {
      return Report(
          comm, rhInvalidArgument,
          absl::StrCat("rhCommGrow: rank ", rank, " of ", nranks, "; a rank of a communicator of ",
                       old, " passes -1, and nranks that is not less"));
    }
    const absl::StatusOr<railhead::comm::UniqueId> meeting = ParseId(id);
    if (!meeting.ok()) return Report(comm, meeting.status());
    return MakeAnother(
        "rhCommGrow", comm, newcomm, config, true,
        [id = *meeting, nranks](Communicator& communicator, const MakingOptions& options) {
          return communicator.family().Grow(id, nranks, options);
        });
  });
}

rhResult_t rhCommFinalize(rhComm_t comm) {
  return Guard(comm, [&] {
    if (const rhResult_t cannot = CannotUse("rhCommFinalize", comm); cannot != rhSuccess) {
      return cannot;
    }
    {
      // Finalize waits for calls on a stream. Read it first: such a call may end at any time.
      const bool queued = comm->on_stream > 0;
      const std::unique_lock<std::mutex> use(comm->in_use, std::try_to_lock);
      if (!use.owns_lock() && !queued) {
        return Report(comm, rhInvalidUsage,
                      "rhCommFinalize: another thread is using this communicator");
      }
    }
    if (const rhResult_t left = TransfersLeft("rhCommFinalize", comm); left != rhSuccess) {
      return left;
    }
    comm->phase.store(Phase::kEnding, std::memory_order_release);
    if (comm->blocking) return Finalize(comm);
    Join(comm->background);  // its last thread, which has finished its work
    try {
      comm->background = railhead::StartThread([comm] { Finalize(comm); });
    } catch (const std::exception&) {
      MakeReady(comm);
      throw;
    }
    return rhInProgress;
  });
}

rhResult_t rhCommDestroy(rhComm_t comm) {
  return Guard(nullptr, [&] {
    if (comm == nullptr) return rhSuccess;
    const Phase phase = comm->phase.load(std::memory_order_acquire);
    if (rhComm::InProgress(phase)) {
      return Report(
          comm, rhInvalidUsage,
          "rhCommDestroy: the communicator is still in progress (rhCommGetAsyncError); use "
          "rhCommAbort to end it");
    }
    Join(comm->background);
    {
      const std::unique_lock<std::mutex> use(comm->in_use, std::try_to_lock);
      const std::lock_guard<std::mutex> state(comm->state);
      if (!use.owns_lock() || comm->on_stream > 0) {
        railhead::comm::Tell(
            comm,
            "rhCommDestroy: a collective is running; use rhCommAbort to end it, or "
            "wait for its stream");
        return rhInvalidUsage;
      }
    }
    if (const rhResult_t left = TransfersLeft("rhCommDestroy", comm); left != rhSuccess) {
      return left;
    }
    std::unique_ptr<Communicator> communicator = std::move(comm->communicator);
    delete comm;
    if (communicator != nullptr) Communicator::Leave(std::move(communicator));
    return rhSuccess;
  });
}

rhResult_t rhCommAbort(rhComm_t comm) {
  return Guard(nullptr, [&] {
    if (comm == nullptr) return rhSuccess;
    if (comm->phase.load(std::memory_order_acquire) == Phase::kStarting) {
      comm->start_abort->Abort(absl::AbortedError("rhCommAbort was called"));
      std::unique_lock<std::mutex> state(comm->state);
      // The communicator that it is created from may wait for ranks that have not called yet.
      if (comm->phase == Phase::kStarting && !comm->background.joinable()) {
        comm->abandoned = true;
        return rhSuccess;
      }
      comm->left_stream.wait(state, [&] { return comm->phase != Phase::kStarting; });
    }
    if (comm->communicator != nullptr) comm->communicator->Abort("rhCommAbort was called");
    {
      std::unique_lock<std::mutex> state(comm->state);
      // Calls queued on a stream may wait behind a call of another communicator.
      if (const auto stream = comm->stream.lock(); stream != nullptr) {
        comm->on_stream -= stream->Drop(comm, rhRemoteError);
        comm->left_stream.notify_all();  // rhCommFinalize waits for these calls, too
      }
      // Abort has ended running calls; wait for them to return.
      comm->left_stream.wait(
          state, [&] { return comm->on_stream == 0 && !rhComm::InProgress(comm->phase); });
    }
    Join(comm->background);
    { const std::lock_guard<std::mutex> use(comm->in_use); }
    delete comm;
    return rhSuccess;
  });
}

rhResult_t rhCommRevoke(rhComm_t comm, int revoke_flags) {
  return Guard(comm, [&] {
    if (const rhResult_t cannot = CannotAsk("rhCommRevoke", comm); cannot != rhSuccess) {
      return cannot;
    }
    if (revoke_flags != 0) {
      return Report(
          comm, rhInvalidArgument,
          absl::StrCat("rhCommRevoke: revoke_flags is ", revoke_flags, ", and must be 0"));
    }
    comm->communicator->Revoke("rhCommRevoke was called");
    return rhSuccess;
  });
}

// NOLINTEND(readability-identifier-naming)
