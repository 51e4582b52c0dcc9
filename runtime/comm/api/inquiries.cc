// SPDX-License-Identifier: Apache-2.0
//
// Queries of the C API about a communicator.
#include <algorithm>
#include <cstring>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/printable_text.h"
#include "railhead/railhead.h"
#include "runtime/comm/api/handle.h"
#include "runtime/comm/communicator/communicator.h"

// NOLINTBEGIN(readability-identifier-naming): these names are the C API.

namespace {

using railhead::comm::CannotAsk;
using railhead::comm::Communicator;
using railhead::comm::CopyInfo;
using railhead::comm::Guard;
using railhead::comm::HasSize;
using railhead::comm::NullArgument;
using railhead::comm::Report;
using Phase = rhComm::Phase;

// Copies a text into a fixed-size array, printable; cuts it if needed.
template <size_t N>
void CopyText(const std::string& from, char (&to)[N]) {
  const std::string text = railhead::PrintableText(from, N - 1);
  std::memcpy(to, text.data(), text.size());
  std::memset(to + text.size(), 0, N - text.size());
}

}  // namespace

rhResult_t rhGetVersion(int* version) {
  if (version == nullptr) return NullArgument(nullptr, "rhGetVersion", "version");
  *version = RH_VERSION_CODE;
  return rhSuccess;
}

rhResult_t rhCommGetAsyncError(rhComm_t comm, rhResult_t* async_error) {
  return Guard(comm, [&] {
    if (comm == nullptr) return NullArgument(nullptr, "rhCommGetAsyncError", "comm");
    if (async_error == nullptr) return NullArgument(comm, "rhCommGetAsyncError", "async_error");
    const Phase phase = comm->phase.load(std::memory_order_acquire);
    const bool over = phase == Phase::kNotStarted || phase == Phase::kEnded;
    const bool there = phase != Phase::kStarting && phase != Phase::kNotStarted;
    const absl::Status verdict = there ? comm->communicator->verdict() : absl::OkStatus();
    const std::lock_guard<std::mutex> state(comm->state);
    *async_error = over ? comm->came_to : rhSuccess;
    if (rhComm::InProgress(phase) || comm->on_stream > 0) {
      *async_error = rhInProgress;
    }
    if (phase == Phase::kNotStarted) comm->told = &comm->verdict;
    if (!verdict.ok()) {
      *async_error = railhead::comm::ResultOf(verdict);
      // The status is final.
      if (comm->verdict.empty()) comm->verdict = railhead::PrintableText(verdict.message());
      comm->told = &comm->verdict;
    }
    return rhSuccess;
  });
}

rhResult_t rhCommCount(rhComm_t comm, int* count) {
  if (const rhResult_t cannot = CannotAsk("rhCommCount", comm); cannot != rhSuccess) return cannot;
  if (count == nullptr) return NullArgument(comm, "rhCommCount", "count");
  *count = comm->communicator->world_size();
  return rhSuccess;
}

rhResult_t rhCommUserRank(rhComm_t comm, int* rank) {
  if (const rhResult_t cannot = CannotAsk("rhCommUserRank", comm); cannot != rhSuccess) {
    return cannot;
  }
  if (rank == nullptr) return NullArgument(comm, "rhCommUserRank", "rank");
  *rank = comm->communicator->rank();
  return rhSuccess;
}

rhResult_t rhCommExplain(rhComm_t comm, const char* collective, size_t bytes, char* text,
                         size_t text_size) {
  return Guard(comm, [&] {
    if (const rhResult_t cannot = CannotAsk("rhCommExplain", comm); cannot != rhSuccess) {
      return cannot;
    }
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
    if (const rhResult_t cannot = CannotAsk("rhCommGetInfo", comm); cannot != rhSuccess) {
      return cannot;
    }
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
    if (const rhResult_t cannot = CannotAsk("rhCommRailInfo", comm); cannot != rhSuccess) {
      return cannot;
    }
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
    CopyText(comm->communicator->leaves_by(rail.name.rail), all.leaves_by);
    CopyInfo(all, info);
    return rhSuccess;
  });
}

// NOLINTEND(readability-identifier-naming)
