// SPDX-License-Identifier: Apache-2.0
#include "join_group.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <string_view>
#include <vector>

namespace railhead_torch {
namespace {

constexpr int64_t kLongestSeconds = 86400;  // of RAILHEAD_TIMEOUT_SECONDS
constexpr size_t kLongestName = 64;

// Returns how many bytes of UTF-8 text, at most `most`, end with a whole character.
size_t CutBetweenCharacters(const std::string& text, size_t most) {
  if (text.size() <= most) return text.size();
  const auto continues = [&text](size_t at) {
    return (static_cast<unsigned char>(text[at]) & 0xc0U) == 0x80U;
  };
  while (most > 0 && continues(most)) --most;
  return most;
}

// Not the id itself, which lets its owner join.
std::string KeyOf(const rhUniqueId& parent) {
  const char* bytes = reinterpret_cast<const char*>(&parent);
  return "railhead/split/" +
         std::to_string(std::hash<std::string_view>()(std::string_view(bytes, sizeof parent)));
}

}  // namespace

c10::intrusive_ptr<RailheadBackend> JoinGroup(const Invitation& invitation, int rank, int size,
                                              std::chrono::milliseconds timeout,
                                              const std::string& name) {
  rhConfig_t config = RH_CONFIG_INITIALIZER;
  const int64_t seconds =
      std::clamp<int64_t>((invitation.timeout.count() + 999) / 1000, 1, kLongestSeconds);
  config.timeoutSeconds = static_cast<int>(seconds);
  config.startTimeoutSeconds = static_cast<int>(seconds);
  const std::string short_name = name.substr(0, CutBetweenCharacters(name, kLongestName));
  config.commName = short_name.c_str();
  rhComm_t comm = nullptr;
  if (rhCommInitRankConfig(&comm, size, invitation.id, rank, &config) != rhSuccess) {
    C10_THROW_ERROR(DistBackendError, c10::str("railhead: ", rhGetLastError(nullptr)));
  }
  return c10::make_intrusive<RailheadBackend>(comm, invitation.id, rank, size, timeout);
}

Invitation ExchangeInvitation(const c10::intrusive_ptr<c10d::Store>& store,
                              const rhUniqueId& parent, int rank,
                              std::chrono::milliseconds timeout) {
  // A separate connection: others use the store while this waits.
  const c10::intrusive_ptr<c10d::Store> own = store->clone();
  own->setTimeout(timeout);
  const int64_t number = own->add(KeyOf(parent) + "/groups of rank " + std::to_string(rank), 1);
  const std::string key = KeyOf(parent) + "/" + std::to_string(number);
  Invitation invitation = {{}, timeout};
  std::string error;
  if (rank == 0) {
    if (rhGetUniqueId(&invitation.id) != rhSuccess) error = rhGetLastError(nullptr);
    std::vector<uint8_t> said(error.begin(), error.end());
    if (error.empty()) {
      const auto* bytes = reinterpret_cast<const uint8_t*>(&invitation);
      said.assign(bytes, bytes + sizeof invitation);
    }
    own->set(key, said);
  } else {
    const std::vector<uint8_t> said = own->get(key);
    if (said.size() == sizeof invitation) {
      std::memcpy(&invitation, said.data(), sizeof invitation);
    } else {
      error.assign(said.begin(), said.end());
    }
  }
  if (!error.empty()) {
    C10_THROW_ERROR(DistBackendError,
                    c10::str("railhead: rank 0 of the group could not begin: ", error));
  }
  return invitation;
}

}  // namespace railhead_torch
