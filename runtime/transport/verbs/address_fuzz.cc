// SPDX-License-Identifier: Apache-2.0
//
// Whatever a peer says of its verbs endpoint can be read in one way or not at all, and what is read
// can be agreed on without leaving anybody's table.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/transport/verbs/address.h"
#include "runtime/transport/verbs/pkey.h"

namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace verbs = railhead::transport::verbs;
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<verbs::VerbsAddress> address = verbs::ParseAddress(bytes);
  if (!address.ok()) return 0;
  Require(verbs::EncodeAddress(*address) == bytes);
  const std::vector<uint16_t> table = {0xffff, 0, 0x0001};
  const std::optional<verbs::PkeyChoice> pkey =
      verbs::CommonPkey(verbs::UsablePkeys(table, 0), address->pkeys);
  Require(!pkey.has_value() || table[pkey->index] == pkey->pkey);
  const std::optional<verbs::GidPair> gids = verbs::CommonGids(address->gids, address->gids);
  Require(gids.has_value() == !address->gids.empty());
  return 0;
}
