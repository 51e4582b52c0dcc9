// SPDX-License-Identifier: Apache-2.0
//
// The C API's communicators: checks arguments, turns Status into result codes and keeps the texts.
// No exception leaves it.
#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "railhead/railhead.h"
#include "runtime/comm/arguments.h"
#include "runtime/comm/calls.h"
#include "runtime/comm/communicator.h"
#include "runtime/comm/handle.h"
#include "runtime/comm/rdma_rail.h"
#include "runtime/comm/unique_id.h"
#include "runtime/config/env.h"
#include "runtime/shm/share.h"

// NOLINTBEGIN(readability-identifier-naming): these names are the C API.

namespace railhead::comm {
namespace {

// A failed call without a communicator has nowhere else to leave its text; as errno does, each
// thread keeps its own.
std::string& ThreadError() {
  thread_local std::string text;
  return text;
}

}  // namespace

CommunicatorOptions OptionsFromEnvironment() {
  CommunicatorOptions options;
  options.setup.problem = config::ReadSettings(config::ProcessEnvironment, options.setup.settings);
  const config::Settings& settings = options.setup.settings;
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

rhResult_t ResultOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return rhSuccess;
    case absl::StatusCode::kInvalidArgument:
      return rhInvalidArgument;
    case absl::StatusCode::kInternal:
      return rhInternalError;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kCancelled:
      return rhRemoteError;
    default:
      return rhSystemError;
  }
}

void Tell(rhComm_t comm, std::string text) {
  comm->last_error = std::move(text);
  comm->told = &comm->last_error;
}

rhResult_t Report(rhComm_t comm, rhResult_t result, std::string text) {
  if (comm == nullptr) {
    ThreadError() = std::move(text);
  } else {
    const std::lock_guard<std::mutex> lock(comm->state);
    Tell(comm, std::move(text));
  }
  return result;
}

rhResult_t Report(rhComm_t comm, const absl::Status& status) {
  if (status.ok()) return rhSuccess;
  return Report(comm, ResultOf(status), std::string(status.message()));
}

rhResult_t NullArgument(rhComm_t comm, const char* call, const char* argument) {
  return Report(comm, rhInvalidArgument, absl::StrCat(call, ": ", argument, " is NULL"));
}

}  // namespace railhead::comm

namespace {

using railhead::comm::Communicator;
using railhead::comm::CommunicatorOptions;
using railhead::comm::Guard;
using railhead::comm::NullArgument;
using railhead::comm::OptionsFromEnvironment;
using railhead::comm::Report;

// Fills a fixed-size text, cutting what does not fit.
template <size_t N>
void CopyText(const std::string& from, char (&to)[N]) {
  const size_t size = std::min(from.size(), N - 1);
  std::memcpy(to, from.data(), size);
  std::memset(to + size, 0, N - size);
}

// A struct of the caller, whose header may be an older or a newer one: its size says how much it
// has. One that nobody has set is refused where it can be.
template <class Info>
bool HasSize(const Info* to) {
  constexpr size_t kLargest = sizeof(Info) + 4096;
  return to->struct_size > sizeof to->struct_size && to->struct_size <= kLargest;
}

template <class Info>
void CopyInfo(Info from, Info* to) {
  const size_t size = to->struct_size;
  from.struct_size = size;
  std::memcpy(to, &from, std::min(size, sizeof from));
  // What this library does not know.
  auto* const bytes = reinterpret_cast<std::byte*>(to);
  if (size > sizeof from) std::memset(bytes + sizeof from, 0, size - sizeof from);
}

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

absl::StatusOr<railhead::comm::UniqueId> ParseId(const rhUniqueId& id) {
  return railhead::comm::ParseUniqueId(absl::string_view(id.internal, sizeof id.internal));
}

// Makes one communicator of another, which no other call may use meanwhile.
template <class Make>
rhResult_t MakeAnother(const char* call, rhComm_t comm, rhComm_t* newcomm, Make make) {
  absl::StatusOr<std::unique_ptr<Communicator>> made = nullptr;
  const rhResult_t result = railhead::comm::RunNow(call, comm, [&](Communicator& communicator) {
    made = make(communicator);
    return made.status();
  });
  if (result == rhSuccess && *made != nullptr) *newcomm = Wrap(*std::move(made));
  return result;
}

rhResult_t NotNull(rhComm_t comm, const char* call, const char* argument) {
  return Report(comm, rhInvalidArgument, absl::StrCat(call, ": ", argument, " must be NULL"));
}

}  // namespace

rhResult_t rhGetVersion(int* version) {
  if (version == nullptr) return NullArgument(nullptr, "rhGetVersion", "version");
  *version = RH_VERSION_CODE;
  return rhSuccess;
}

const char* rhGetErrorString(rhResult_t result) {
  switch (result) {
    case rhSuccess:
      return "no error";
    case rhSystemError:
      return "system error";
    case rhInternalError:
      return "internal error";
    case rhInvalidArgument:
      return "invalid argument";
    case rhInvalidUsage:
      return "invalid usage";
    case rhRemoteError:
      return "another rank failed or could not be reached";
    case rhInProgress:
      return "operation in progress";
  }
  return "unknown result code";
}

const char* rhGetLastError(rhComm_t comm) {
  if (comm == nullptr) return railhead::comm::ThreadError().c_str();
  const std::lock_guard<std::mutex> lock(comm->state);
  return comm->told->c_str();
}

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
  return Guard(nullptr, [&] {
    if (comm == nullptr) return NullArgument(nullptr, "rhCommInitRank", "comm");
    *comm = nullptr;
    if (nranks < 1 || rank < 0 || rank >= nranks) {
      return Report(nullptr, rhInvalidArgument,
                    absl::StrCat("rhCommInitRank: rank ", rank, " of ", nranks,
                                 " does not exist; ranks go from 0 to nranks-1"));
    }
    const absl::StatusOr<railhead::comm::UniqueId> parsed = ParseId(id);
    if (!parsed.ok()) return Report(nullptr, parsed.status());
    CommunicatorOptions options = OptionsFromEnvironment();
    options.rendezvous = {rank, nranks, parsed->address.ToString(), parsed->port};
    options.key = parsed->key;
    if (rank == 0) options.listener = railhead::comm::TakeListener(*parsed);
    return Create(std::move(options), comm);
  });
}

rhResult_t rhCommInitFromEnv(rhComm_t* comm) {
  return Guard(nullptr, [&] {
    if (comm == nullptr) return NullArgument(nullptr, "rhCommInitFromEnv", "comm");
    *comm = nullptr;
    CommunicatorOptions options = OptionsFromEnvironment();
    absl::StatusOr<railhead::config::Rendezvous> rendezvous =
        railhead::config::ReadRendezvous(railhead::config::ProcessEnvironment);
    if (!rendezvous.ok()) return Report(nullptr, rendezvous.status());
    options.rendezvous = *std::move(rendezvous);
    return Create(std::move(options), comm);
  });
}

rhResult_t rhCommSplit(rhComm_t comm, int color, int key, rhComm_t* newcomm, rhConfig_t* config) {
  return Guard(comm, [&] {
    if (comm == nullptr) return NullArgument(nullptr, "rhCommSplit", "comm");
    if (newcomm == nullptr) return NullArgument(comm, "rhCommSplit", "newcomm");
    *newcomm = nullptr;
    if (config != nullptr) return NotNull(comm, "rhCommSplit", "config");
    if (color < 0 && color != RH_SPLIT_NOCOLOR) {
      return Report(comm, rhInvalidArgument,
                    absl::StrCat("rhCommSplit: color ", color,
                                 " is negative; use RH_SPLIT_NOCOLOR to be in no group"));
    }
    return MakeAnother("rhCommSplit", comm, newcomm,
                       [&](Communicator& communicator) { return communicator.Split(color, key); });
  });
}

rhResult_t rhCommShrink(rhComm_t comm, const int* exclude_ranks, int exclude_count,
                        rhComm_t* newcomm, rhConfig_t* config) {
  return Guard(comm, [&] {
    if (comm == nullptr) return NullArgument(nullptr, "rhCommShrink", "comm");
    if (newcomm == nullptr) return NullArgument(comm, "rhCommShrink", "newcomm");
    *newcomm = nullptr;
    if (config != nullptr) return NotNull(comm, "rhCommShrink", "config");
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
    return MakeAnother("rhCommShrink", comm, newcomm,
                       [&](Communicator& communicator) { return communicator.Shrink(excluded); });
  });
}

rhResult_t rhCommGrow(rhComm_t comm, int nranks, rhUniqueId id, int rank, rhComm_t* newcomm,
                      rhConfig_t* config) {
  return Guard(comm, [&] {
    if (newcomm == nullptr) return NullArgument(comm, "rhCommGrow", "newcomm");
    *newcomm = nullptr;
    if (config != nullptr) return NotNull(comm, "rhCommGrow", "config");
    if (comm == nullptr) return rhCommInitRank(newcomm, nranks, id, rank);
    const int old = comm->communicator->world_size();
    if (rank != -1 || nranks < old) {
      return Report(
          comm, rhInvalidArgument,
          absl::StrCat("rhCommGrow: rank ", rank, " of ", nranks, "; a rank of a communicator of ",
                       old, " passes -1, and nranks that is not less"));
    }
    const absl::StatusOr<railhead::comm::UniqueId> meeting = ParseId(id);
    if (!meeting.ok()) return Report(comm, meeting.status());
    return MakeAnother("rhCommGrow", comm, newcomm, [&](Communicator& communicator) {
      return communicator.Grow(*meeting, nranks);
    });
  });
}

rhResult_t rhCommDestroy(rhComm_t comm) {
  return Guard(nullptr, [&] {
    if (comm == nullptr) return rhSuccess;
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
    std::unique_ptr<Communicator> communicator = std::move(comm->communicator);
    delete comm;
    Communicator::Leave(std::move(communicator));
    return rhSuccess;
  });
}

rhResult_t rhCommAbort(rhComm_t comm) {
  return Guard(nullptr, [&] {
    if (comm == nullptr) return rhSuccess;
    comm->communicator->Abort("rhCommAbort was called");
    {
      std::unique_lock<std::mutex> state(comm->state);
      // What waits on a stream may stand behind another communicator's call.
      if (const auto stream = comm->stream.lock(); stream != nullptr) {
        comm->on_stream -= stream->Drop(comm, rhRemoteError);
      }
      // What runs has been told to end; wait for it to leave.
      comm->left_stream.wait(state, [&] { return comm->on_stream == 0; });
    }
    { const std::lock_guard<std::mutex> use(comm->in_use); }
    delete comm;
    return rhSuccess;
  });
}

rhResult_t rhCommGetAsyncError(rhComm_t comm, rhResult_t* async_error) {
  return Guard(comm, [&] {
    if (comm == nullptr) return NullArgument(nullptr, "rhCommGetAsyncError", "comm");
    if (async_error == nullptr) return NullArgument(comm, "rhCommGetAsyncError", "async_error");
    const absl::Status verdict = comm->communicator->verdict();
    const std::lock_guard<std::mutex> state(comm->state);
    *async_error = rhSuccess;
    if (comm->on_stream > 0) *async_error = rhInProgress;
    if (!verdict.ok()) {
      *async_error = railhead::comm::ResultOf(verdict);
      // It is the same from now on.
      if (comm->verdict.empty()) comm->verdict = std::string(verdict.message());
      comm->told = &comm->verdict;
    }
    return rhSuccess;
  });
}

rhResult_t rhCommCount(rhComm_t comm, int* count) {
  if (comm == nullptr) return NullArgument(nullptr, "rhCommCount", "comm");
  if (count == nullptr) return NullArgument(comm, "rhCommCount", "count");
  *count = comm->communicator->world_size();
  return rhSuccess;
}

rhResult_t rhCommUserRank(rhComm_t comm, int* rank) {
  if (comm == nullptr) return NullArgument(nullptr, "rhCommUserRank", "comm");
  if (rank == nullptr) return NullArgument(comm, "rhCommUserRank", "rank");
  *rank = comm->communicator->rank();
  return rhSuccess;
}

rhResult_t rhCommExplain(rhComm_t comm, const char* collective, size_t bytes, char* text,
                         size_t text_size) {
  return Guard(comm, [&] {
    if (comm == nullptr) return NullArgument(nullptr, "rhCommExplain", "comm");
    if (collective == nullptr) return NullArgument(comm, "rhCommExplain", "collective");
    if (text == nullptr || text_size == 0) return NullArgument(comm, "rhCommExplain", "text");
    const absl::StatusOr<std::string> why = comm->communicator->Explain(collective, bytes);
    if (!why.ok()) {
      return Report(comm, rhInvalidArgument,
                    absl::StrCat("rhCommExplain: ", why.status().message()));
    }
    const size_t size = std::min(why->size(), text_size - 1);
    std::memcpy(text, why->data(), size);
    text[size] = '\0';
    return rhSuccess;
  });
}

rhResult_t rhCommGetInfo(rhComm_t comm, rhCommInfo_t* info) {
  return Guard(comm, [&] {
    if (comm == nullptr) return NullArgument(nullptr, "rhCommGetInfo", "comm");
    if (info == nullptr) return NullArgument(comm, "rhCommGetInfo", "info");
    if (!HasSize(info)) {
      return Report(comm, rhInvalidArgument,
                    "rhCommGetInfo: info->struct_size is not sizeof(rhCommInfo_t)");
    }
    rhCommInfo_t all{};
    const Communicator& communicator = *comm->communicator;
    CopyText(communicator.transport(), all.transport);
    all.rails = static_cast<int>(communicator.Rails().size());
    const std::string degraded = communicator.degraded_reason();
    all.degraded = degraded.empty() ? 0 : 1;
    CopyText(degraded, all.degraded_reason);
    all.rejected_connections = communicator.rejected_connections();
    CopyText(communicator.unused_memory_reason(), all.unused_memory_reason);
    CopyInfo(all, info);
    return rhSuccess;
  });
}

rhResult_t rhCommRailInfo(rhComm_t comm, int index, rhRailInfo_t* info) {
  return Guard(comm, [&] {
    if (comm == nullptr) return NullArgument(nullptr, "rhCommRailInfo", "comm");
    if (info == nullptr) return NullArgument(comm, "rhCommRailInfo", "info");
    if (!HasSize(info)) {
      return Report(comm, rhInvalidArgument,
                    "rhCommRailInfo: info->struct_size is not sizeof(rhRailInfo_t)");
    }
    const auto rails = comm->communicator->Rails();
    if (index < 0 || static_cast<size_t>(index) >= rails.size()) {
      return Report(comm, rhInvalidArgument,
                    absl::StrCat("rhCommRailInfo: there is no rail with index ", index, ", only ",
                                 rails.size(), " rail(s)"));
    }
    const auto& rail = rails[static_cast<size_t>(index)];
    rhRailInfo_t all{};
    all.rail = rail.name.rail;
    all.port = rail.name.port;
    all.up = rail.up ? 1 : 0;
    CopyText(rail.name.device, all.device);
    CopyText(rail.name.transport, all.transport);
    all.tx_bytes = rail.transmit_bytes;
    all.rx_bytes = rail.receive_bytes;
    all.retransmits = rail.retransmits;
    CopyInfo(all, info);
    return rhSuccess;
  });
}

// NOLINTEND(readability-identifier-naming)
