// SPDX-License-Identifier: Apache-2.0
#include "runtime/bootstrap/job_secret.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/printable_text.h"
#include "runtime/base/now.h"
#include "runtime/bootstrap/secret.h"

namespace railhead::bootstrap {
namespace {

constexpr absl::Duration kPause = absl::Milliseconds(20);
constexpr size_t kLongestCause = 700;

bool IsFolder(const std::string& path) {
  struct stat about {};
  return ::stat(path.c_str(), &about) == 0 && S_ISDIR(about.st_mode);
}

bool Exists(const std::string& path) {
  struct stat about {};
  return ::stat(path.c_str(), &about) == 0;
}

}  // namespace

absl::StatusOr<JobSecret> AwaitJobSecret(const std::string& folder, absl::Time deadline,
                                         const Halt& halt) {
  JobSecret found;
  if (!IsFolder(folder)) {
    found.none_cause =
        "the node agent gave this container no secret (devicePlugin.jobSecrets of the chart)";
    return found;
  }
  found.promised = true;
  const absl::Time begin = MonotonicNow();
  const std::string key = absl::StrCat(folder, "/key");
  const std::string none = absl::StrCat(folder, "/none");
  while (true) {
    if (Exists(key)) {
      absl::StatusOr<std::string> secret = ReadGivenSecretFile(key);
      if (!secret.ok()) return secret.status();
      found.secret = *std::move(secret);
      return found;
    }
    const absl::StatusOr<std::string> cause = ReadWholeFile(none, kLongestCause);
    if (cause.ok()) {
      found.none_cause = PrintableText(*cause, kLongestCause);
      return found;
    }
    const absl::Time now = MonotonicNow();
    if (now >= deadline) {
      found.none_cause =
          absl::StrCat("the node agent wrote no secret to ", folder, " within ",
                       absl::FormatDuration(absl::Trunc(now - begin, absl::Seconds(1))),
                       "; look for \"secret\" in its log");
      return found;
    }
    if (absl::Status halted = SleepUntil(std::min(now + kPause, deadline), halt); !halted.ok()) {
      return halted;
    }
  }
}

}  // namespace railhead::bootstrap
