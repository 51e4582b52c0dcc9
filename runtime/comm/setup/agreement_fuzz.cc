// SPDX-License-Identifier: Apache-2.0
//
// Whatever a rank or rank 0 says while a communicator starts: it is understood as it was meant, or
// refused.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "absl/strings/string_view.h"
#include "runtime/comm/setup/agreement.h"
#include "runtime/comm/setup/decision.h"

namespace {

constexpr int kWorld = 30;

void Require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace comm = railhead::comm;
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (const auto statement = comm::ParseStatement(bytes); statement.ok()) {
    Require(comm::Encode(*statement) == bytes);
  }
  if (const auto agreement = comm::ParseAgreement(bytes, kWorld); agreement.ok()) {
    // Runs of ranks may be cut otherwise.
    const auto again = comm::ParseAgreement(comm::Encode(*agreement), kWorld);
    Require(again.ok() && *again == *agreement);
  }
  if (const auto particulars = comm::ParseParticulars(bytes, kWorld); particulars.ok()) {
    Require(comm::Encode(*particulars) == bytes);
  }
  if (const auto whereabouts = comm::ParseWhereabouts(bytes); whereabouts.ok()) {
    Require(comm::Encode(*whereabouts) == bytes);
  }
  if (const auto report = comm::ParseReport(bytes); report.ok()) {
    const auto again = comm::ParseReport(comm::Encode(*report));
    Require(again.ok() && *again == *report);
  }
  // Beside one who does it right, first and later.
  const std::string good =
      comm::Encode(comm::Statement{comm::Encode(comm::RankReport()), {}, 0, {0}});
  comm::Coordinator("").Answer({std::string(bytes), good}).IgnoreError();
  comm::Coordinator later("");
  Require(later.Answer({good, good}).ok());
  later.Answer({good, std::string(bytes)}).IgnoreError();
  return 0;
}
