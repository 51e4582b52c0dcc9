// SPDX-License-Identifier: Apache-2.0
//
// Exported tables of NCCL's tuner interface. They exist only if RAILHEAD_NCCL_TUNER requests them:
// NCCL looks for a tuner in the library of the network plugin, and one that does nothing would not
// be the same as none, because with a tuner NCCL skips rules of its own (NCCL_CTA_POLICY). So each
// symbol is an indirect function, whose resolver dlsym calls, and which may be null.
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "plugins/nccl/abi/tuner.h"
#include "plugins/nccl/name.h"
#include "plugins/nccl/tuner/costs.h"
#include "plugins/nccl/tuner/network_rates.h"
#include "runtime/base/caught.h"

namespace railhead::nccl {
namespace {

using abi::Result;

// A communicator, as NCCL's context.
struct Tuned {
  CommunicatorSize size;
  std::optional<NetworkRates> rates;  // nullopt: the variable is wrong, and costs stay
};

const char* OwnValue() {
  const char* const value = std::getenv(kTunerVariable);
  return value == nullptr ? "" : value;
}

void Open(size_t ranks, size_t nodes, abi::LogFunction log, void** context) {
  auto tuned = std::make_unique<Tuned>(Tuned{{ranks, nodes}, std::nullopt});
  const absl::StatusOr<NetworkRates> rates = ParseNetworkRates(OwnValue());
  if (rates.ok()) tuned->rates = *rates;
  *context = tuned.release();
  if (log == nullptr) return;
  if (!rates.ok()) {
    log(abi::kWarn, abi::kTuning, __FILE__, __LINE__, "TUNER/Railhead: %s; it has no effect",
        std::string(rates.status().message()).c_str());
    return;
  }
  log(abi::kInfo, abi::kInit | abi::kTuning, __FILE__, __LINE__,
      "TUNER/Railhead: costs for a network of %.1f Gbit/s per node instead of %.1f", rates->real,
      rates->told);
}

// Without memory, costs stay, and the communicator works.
Result InitV2(size_t ranks, size_t nodes, abi::LogFunction log, void** context) {
  *context = nullptr;
  Caught([&] { Open(ranks, nodes, log, context); }, [](const absl::Status&) {});
  return abi::kSuccess;
}

Result InitV5(void** context, uint64_t /*comm_id*/, size_t ranks, size_t nodes,
              abi::LogFunction log, void* /*nvlink_domains*/, void* /*constants*/) {
  return InitV2(ranks, nodes, log, context);
}

// Version 2 has no table to correct; with no choice of the tuner, NCCL chooses.
Result GetInfoV2(void* /*context*/, int /*collective*/, size_t /*bytes*/, int /*collnet*/,
                 int /*nvls*/, int /*operations*/, int* /*algorithm*/, int* /*protocol*/,
                 int* /*channels*/) {
  return abi::kSuccess;
}

Result GetInfoV3(void* context, int collective, size_t bytes, int /*operations*/, float** costs,
                 int algorithms, int protocols, int* /*channels*/) {
  const auto* const tuned = static_cast<const Tuned*>(context);
  if (tuned == nullptr || !tuned->rates.has_value() || algorithms < 1 || protocols < 1) {
    return abi::kSuccess;
  }
  const size_t entries = static_cast<size_t>(algorithms) * static_cast<size_t>(protocols);
  CorrectCosts(tuned->size, {collective, bytes}, *tuned->rates,
               {reinterpret_cast<float*>(costs), entries}, protocols);
  return abi::kSuccess;
}

Result GetInfoV4(void* context, int collective, size_t bytes, int operations, float** costs,
                 int algorithms, int protocols, int /*registered*/, int* channels) {
  return GetInfoV3(context, collective, bytes, operations, costs, algorithms, protocols, channels);
}

Result Close(void* context) {
  delete static_cast<Tuned*>(context);
  return abi::kSuccess;
}

constexpr abi::TunerV2 kTableV2 = {
    .name = kName, .init = InitV2, .get_collective_info = GetInfoV2, .destroy = Close};
constexpr abi::TunerV3 kTableV3 = {
    .name = kName, .init = InitV2, .get_collective_info = GetInfoV3, .destroy = Close};
constexpr abi::TunerV4 kTableV4 = {
    .name = kName, .init = InitV2, .get_collective_info = GetInfoV4, .destroy = Close};
constexpr abi::TunerV5 kTableV5 = {
    .name = kName, .init = InitV5, .get_collective_info = GetInfoV4, .finalize = Close};
constexpr abi::TunerV6 kTableV6 = {.name = kName,
                                   .init = InitV5,
                                   .get_collective_info = GetInfoV4,
                                   .finalize = Close,
                                   .get_chunk_size = nullptr};

// What dlsym returns is called a function until NCCL takes it for a table.
using Symbol = void (*)();

template <class Table>
Symbol IfRequested(const Table& table) {
  return RequestsTuner(OwnValue()) ? reinterpret_cast<Symbol>(const_cast<Table*>(&table)) : nullptr;
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): these names are NCCL's.
#define RAILHEAD_EXPORT_TUNER(version)                                                 \
  extern "C" {                                                                         \
  Symbol RailheadTunerV##version() { return IfRequested(kTableV##version); }           \
  __attribute__((visibility("default"),                                                \
                 ifunc("RailheadTunerV" #version))) void ncclTunerPlugin_v##version(); \
  }

RAILHEAD_EXPORT_TUNER(2)
RAILHEAD_EXPORT_TUNER(3)
RAILHEAD_EXPORT_TUNER(4)
RAILHEAD_EXPORT_TUNER(5)
RAILHEAD_EXPORT_TUNER(6)
// NOLINTEND(readability-identifier-naming)

}  // namespace railhead::nccl
