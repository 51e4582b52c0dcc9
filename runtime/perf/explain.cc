// SPDX-License-Identifier: Apache-2.0
#include "runtime/perf/explain.h"

#include <array>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace railhead::perf {
namespace {

constexpr size_t kLongestText = 4096;

// Returns the library's name of a collective (this program's names are those of nccl-tests).
std::string LibraryName(absl::string_view name) {
  constexpr std::array<std::pair<const char*, const char*>, 5> kNames = {
      {{"alltoall", "all_to_all"},
       {"alltoallv", "all_to_all"},
       {"all_gatherv", "all_gather"},
       {"reduce_scatterv", "reduce_scatter"},
       {"sendrecv", "send_receive"}}};
  for (const auto& [ours, theirs] : kNames) {
    if (name == ours) return theirs;
  }
  return std::string(name);
}

}  // namespace

absl::StatusOr<std::string> Explain(rhComm_t comm, absl::string_view collective,
                                    absl::Span<const uint64_t> sizes) {
  const std::string name = LibraryName(collective);
  std::string all;
  for (const uint64_t size : sizes) {
    std::string text(kLongestText, '\0');
    if (rhCommExplain(comm, name.c_str(), size, text.data(), text.size()) != rhSuccess) {
      return absl::InternalError(rhGetLastError(comm));
    }
    absl::StrAppend(&all, text.c_str());
  }
  return all;
}

}  // namespace railhead::perf
