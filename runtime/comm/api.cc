// SPDX-License-Identifier: Apache-2.0
//
// The C API: checks arguments, turns Status into result codes and keeps the texts. No exception
// leaves it.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <exception>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "railhead/railhead.h"
#include "runtime/comm/arguments.h"
#include "runtime/comm/communicator.h"
#include "runtime/comm/rdma_rail.h"
#include "runtime/comm/unique_id.h"
#include "runtime/config/env.h"
#include "runtime/reduce/reduce.h"
#include "runtime/shm/share.h"

// NOLINTBEGIN(readability-identifier-naming): these names are the C API.

struct rhComm {
  std::unique_ptr<railhead::comm::Communicator> communicator;
  std::mutex in_use;      // held while a collective runs
  std::mutex error_lock;  // guards last_error
  std::string last_error;
};

namespace {

using railhead::comm::Communicator;
using railhead::comm::CommunicatorOptions;
using railhead::comm::WrongBuffers;
using railhead::comm::WrongOperator;
using railhead::comm::WrongRoot;
using railhead::comm::WrongStream;
using railhead::comm::WrongType;
using railhead::reduce::SizeOf;

// A failed call without a communicator has nowhere else to leave its text; as errno does, each
// thread keeps its own.
std::string& ThreadError() {
  thread_local std::string text;
  return text;
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

rhResult_t Report(rhComm_t comm, rhResult_t result, std::string text) {
  if (comm == nullptr) {
    ThreadError() = std::move(text);
  } else {
    const std::lock_guard<std::mutex> lock(comm->error_lock);
    comm->last_error = std::move(text);
  }
  return result;
}

rhResult_t Report(rhComm_t comm, const absl::Status& status) {
  if (status.ok()) return rhSuccess;
  return Report(comm, ResultOf(status), std::string(status.message()));
}

// Runs the body of a call; what it throws (no memory, no thread) becomes a result.
template <class Body>
rhResult_t Guard(rhComm_t comm, Body body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return Report(comm, rhSystemError, "out of memory");
  } catch (const std::exception& exception) {
    return Report(comm, rhSystemError, exception.what());
  }
}

// Fills a fixed-size text, cutting what does not fit.
template <size_t N>
void CopyText(const std::string& from, char (&to)[N]) {
  const size_t size = std::min(from.size(), N - 1);
  std::memcpy(to, from.data(), size);
  std::memset(to + size, 0, N - size);
}

rhResult_t NullArgument(rhComm_t comm, const char* call, const char* argument) {
  return Report(comm, rhInvalidArgument, absl::StrCat(call, ": ", argument, " is NULL"));
}

// The part of the options that comes from the environment, whoever names the group.
CommunicatorOptions OptionsFromEnvironment() {
  CommunicatorOptions options;
  options.setup.problem =
      railhead::config::ReadSettings(railhead::config::ProcessEnvironment, options.setup.settings);
  options.setup.open_rdma_rail = railhead::comm::OpenVerbsRail;
  options.setup.place = railhead::shm::PlaceOfProcess();
  return options;
}

rhResult_t Create(CommunicatorOptions options, rhComm_t* comm) {
  absl::StatusOr<std::unique_ptr<Communicator>> created = Communicator::Create(std::move(options));
  if (!created.ok()) return Report(nullptr, created.status());
  auto result = std::make_unique<rhComm>();
  result->communicator = *std::move(created);
  *comm = result.release();
  return rhSuccess;
}

// The first of several texts that says something.
std::string FirstOf(std::initializer_list<std::string> texts) {
  const auto* found = std::find_if(texts.begin(), texts.end(),
                                   [](const std::string& text) { return !text.empty(); });
  return found == texts.end() ? "" : *found;
}

// Runs a collective: `check` says what is wrong with the arguments, `run` does it.
template <class Check, class Run>
rhResult_t Collective(const char* call, rhComm_t comm, Check check, Run run) {
  return Guard(comm, [&] {
    if (comm == nullptr) return NullArgument(nullptr, call, "comm");
    const std::string wrong = check();
    if (!wrong.empty()) {
      return Report(comm, rhInvalidArgument, absl::StrCat(call, ": ", wrong));
    }
    const std::unique_lock<std::mutex> use(comm->in_use, std::try_to_lock);
    if (!use.owns_lock()) {
      return Report(comm, rhInvalidUsage,
                    absl::StrCat(call, ": another thread is using this communicator"));
    }
    return Report(comm, run(*comm->communicator));
  });
}

const std::byte* Bytes(const void* buffer) { return static_cast<const std::byte*>(buffer); }
std::byte* Bytes(void* buffer) { return static_cast<std::byte*>(buffer); }

size_t Rank(rhComm_t comm) { return static_cast<size_t>(comm->communicator->rank()); }
size_t Ranks(rhComm_t comm) { return static_cast<size_t>(comm->communicator->world_size()); }

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
  if (comm == nullptr) return ThreadError().c_str();
  const std::lock_guard<std::mutex> lock(comm->error_lock);
  return comm->last_error.c_str();
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
    const absl::StatusOr<railhead::comm::UniqueId> parsed =
        railhead::comm::ParseUniqueId(absl::string_view(id.internal, sizeof id.internal));
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

rhResult_t rhCommDestroy(rhComm_t comm) {
  return Guard(nullptr, [&] {
    if (comm == nullptr) return rhSuccess;
    {
      const std::unique_lock<std::mutex> use(comm->in_use, std::try_to_lock);
      if (!use.owns_lock()) {
        return Report(comm, rhInvalidUsage,
                      "rhCommDestroy: a collective is running; use rhCommAbort to end it");
      }
    }
    delete comm;
    return rhSuccess;
  });
}

rhResult_t rhCommAbort(rhComm_t comm) {
  return Guard(nullptr, [&] {
    if (comm == nullptr) return rhSuccess;
    comm->communicator->Abort("rhCommAbort was called");
    {
      // A running collective has been told to end; wait for it to leave.
      const std::lock_guard<std::mutex> use(comm->in_use);
    }
    delete comm;
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

rhResult_t rhAllReduce(const void* sendbuf, void* recvbuf, size_t count, rhDataType_t datatype,
                       rhRedOp_t op, rhComm_t comm, rhStream_t stream) {
  return Collective(
      "rhAllReduce", comm,
      [&] {
        return FirstOf({WrongType(datatype), WrongOperator(datatype, op), WrongStream(stream),
                        WrongBuffers({.send = sendbuf, .receive = recvbuf, .count = count},
                                     SizeOf(datatype))});
      },
      [&](Communicator& communicator) {
        return communicator.AllReduce(datatype, op, Bytes(sendbuf), Bytes(recvbuf), count);
      });
}

rhResult_t rhAllGather(const void* sendbuf, void* recvbuf, size_t sendcount, rhDataType_t datatype,
                       rhComm_t comm, rhStream_t stream) {
  return Collective(
      "rhAllGather", comm,
      [&] {
        return FirstOf({WrongType(datatype), WrongStream(stream),
                        WrongBuffers({.send = sendbuf,
                                      .receive = recvbuf,
                                      .count_name = "sendcount",
                                      .count = sendcount,
                                      .receive_parts = Ranks(comm),
                                      .in_place_part = Rank(comm)},
                                     SizeOf(datatype))});
      },
      [&](Communicator& communicator) {
        return communicator.AllGather(Bytes(sendbuf), Bytes(recvbuf), sendcount * SizeOf(datatype));
      });
}

rhResult_t rhReduceScatter(const void* sendbuf, void* recvbuf, size_t recvcount,
                           rhDataType_t datatype, rhRedOp_t op, rhComm_t comm, rhStream_t stream) {
  return Collective(
      "rhReduceScatter", comm,
      [&] {
        return FirstOf({WrongType(datatype), WrongOperator(datatype, op), WrongStream(stream),
                        WrongBuffers({.send = sendbuf,
                                      .receive = recvbuf,
                                      .count_name = "recvcount",
                                      .count = recvcount,
                                      .send_parts = Ranks(comm),
                                      .in_place_part = Rank(comm)},
                                     SizeOf(datatype))});
      },
      [&](Communicator& communicator) {
        return communicator.ReduceScatter(datatype, op, Bytes(sendbuf), Bytes(recvbuf), recvcount);
      });
}

rhResult_t rhBroadcast(const void* sendbuf, void* recvbuf, size_t count, rhDataType_t datatype,
                       int root, rhComm_t comm, rhStream_t stream) {
  return Collective(
      "rhBroadcast", comm,
      [&] {
        const bool is_root = comm->communicator->rank() == root;
        return FirstOf({WrongType(datatype), WrongRoot(root, comm->communicator->world_size()),
                        WrongStream(stream),
                        WrongBuffers({.send = sendbuf,
                                      .receive = recvbuf,
                                      .count = count,
                                      .send_parts = is_root ? size_t{1} : 0},
                                     SizeOf(datatype))});
      },
      [&](Communicator& communicator) {
        return communicator.Broadcast(Bytes(sendbuf), Bytes(recvbuf), count * SizeOf(datatype),
                                      root);
      });
}

rhResult_t rhReduce(const void* sendbuf, void* recvbuf, size_t count, rhDataType_t datatype,
                    rhRedOp_t op, int root, rhComm_t comm, rhStream_t stream) {
  return Collective(
      "rhReduce", comm,
      [&] {
        const bool is_root = comm->communicator->rank() == root;
        return FirstOf({WrongType(datatype), WrongOperator(datatype, op),
                        WrongRoot(root, comm->communicator->world_size()), WrongStream(stream),
                        WrongBuffers({.send = sendbuf,
                                      .receive = recvbuf,
                                      .count = count,
                                      .receive_parts = is_root ? size_t{1} : 0},
                                     SizeOf(datatype))});
      },
      [&](Communicator& communicator) {
        return communicator.Reduce(datatype, op, Bytes(sendbuf), Bytes(recvbuf), count, root);
      });
}

rhResult_t rhBarrier(rhComm_t comm) {
  return Collective(
      "rhBarrier", comm, [] { return std::string(); },
      [](Communicator& communicator) { return communicator.Barrier(); });
}

rhResult_t rhCommGetInfo(rhComm_t comm, rhCommInfo_t* info) {
  return Guard(comm, [&] {
    if (comm == nullptr) return NullArgument(nullptr, "rhCommGetInfo", "comm");
    if (info == nullptr) return NullArgument(comm, "rhCommGetInfo", "info");
    if (info->struct_size != sizeof *info) {
      return Report(comm, rhInvalidArgument,
                    "rhCommGetInfo: info->struct_size is not sizeof(rhCommInfo_t)");
    }
    const Communicator& communicator = *comm->communicator;
    CopyText(communicator.transport(), info->transport);
    info->rails = static_cast<int>(communicator.Rails().size());
    info->degraded = communicator.degraded_reason().empty() ? 0 : 1;
    CopyText(communicator.degraded_reason(), info->degraded_reason);
    info->rejected_connections = communicator.rejected_connections();
    return rhSuccess;
  });
}

rhResult_t rhCommRailInfo(rhComm_t comm, int index, rhRailInfo_t* info) {
  return Guard(comm, [&] {
    if (comm == nullptr) return NullArgument(nullptr, "rhCommRailInfo", "comm");
    if (info == nullptr) return NullArgument(comm, "rhCommRailInfo", "info");
    if (info->struct_size != sizeof *info) {
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
    info->rail = rail.name.rail;
    info->port = rail.name.port;
    info->up = rail.up ? 1 : 0;
    CopyText(rail.name.device, info->device);
    CopyText(rail.name.transport, info->transport);
    info->tx_bytes = rail.transmit_bytes;
    info->rx_bytes = rail.receive_bytes;
    info->retransmits = rail.retransmits;
    return rhSuccess;
  });
}

// NOLINTEND(readability-identifier-naming)
