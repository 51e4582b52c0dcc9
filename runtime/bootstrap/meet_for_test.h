// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_RUNTIME_BOOTSTRAP_MEET_FOR_TEST_H_
#define RAILHEAD_RUNTIME_BOOTSTRAP_MEET_FOR_TEST_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "runtime/base/now.h"
#include "runtime/bootstrap/bootstrap.h"

namespace railhead::bootstrap {

// Joins and returns what the ranks of its world contributed, in their order; or the error.
inline std::string Meet(JoinOptions options, const std::string& mine) {
  absl::StatusOr<Bootstrap> joined = Bootstrap::Join(std::move(options));
  if (!joined.ok()) return joined.status().ToString();
  const absl::StatusOr<std::vector<std::string>> all =
      joined->Exchange(mine, MonotonicNow() + absl::Seconds(60));
  return all.ok() ? absl::StrJoin(*all, " ") : all.status().ToString();
}

}  // namespace railhead::bootstrap

#endif  // RAILHEAD_RUNTIME_BOOTSTRAP_MEET_FOR_TEST_H_
