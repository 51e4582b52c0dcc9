// SPDX-License-Identifier: Apache-2.0
#include "runtime/bootstrap/secret.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "runtime/net/fd.h"
#include "runtime/net/socket.h"

namespace railhead::bootstrap {
namespace {

// Shorter ones can be found by trying.
constexpr size_t kShortest = 16;
// Longer ones are some other file.
constexpr size_t kLongest = 4096;

constexpr absl::string_view kAdvice =
    "make one with 'openssl rand -hex 32' and give all ranks the same";

absl::Status WrongFile(absl::StatusCode code, absl::string_view file, absl::string_view what) {
  return absl::Status(code, absl::StrCat(file, " ", what, ": ", kAdvice));
}

}  // namespace

Secret::Secret(absl::string_view file, absl::string_view group_key)
    : has_file_(!file.empty()), proves_(!file.empty() || !group_key.empty()) {
  if (proves_) key_ = railhead::Mac(file, "railhead job", {group_key});
}

std::string Secret::Mac(absl::string_view label,
                        std::initializer_list<absl::string_view> parts) const {
  return railhead::Mac(key_, label, parts);
}

Secret Secret::ForSession(absl::string_view session) const {
  return Secret(Mac("railhead session", {session}), has_file_, proves_);
}

absl::StatusOr<std::string> ReadSecretFile(const std::string& path, const Logger& log,
                                           absl::string_view set_by) {
  if (path.empty()) return std::string();
  const std::string file = absl::StrCat(set_by, "=", path);
  const net::Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) {
    const absl::Status error = net::ErrnoError("cannot be opened", errno);
    return WrongFile(error.code(), file, error.message());
  }
  std::string text(kLongest + 1, '\0');
  const ssize_t got = ::read(fd.get(), text.data(), text.size());
  if (got < 0) {
    const absl::Status error = net::ErrnoError("cannot be read", errno);
    return WrongFile(error.code(), file, error.message());
  }
  text.resize(static_cast<size_t>(got));
  if (text.size() > kLongest) {
    return WrongFile(absl::StatusCode::kInvalidArgument, file,
                     absl::StrCat("has more than ", kLongest, " bytes and is not a secret"));
  }
  text.resize(text.find_last_not_of("\r\n") + 1);
  if (text.size() < kShortest) {
    return WrongFile(
        absl::StatusCode::kInvalidArgument, file,
        text.empty() ? "is empty" : absl::StrCat("has fewer than ", kShortest, " bytes"));
  }
  struct stat about {};
  if (::fstat(fd.get(), &about) == 0 && (about.st_mode & S_IROTH) != 0) {
    log.Warn(absl::StrCat(file,
                          " is readable by every user: chmod o-r, or give the Secret's volume "
                          "defaultMode: 0440 and the pod an fsGroup"));
  }
  return text;
}

std::string GroupName(absl::string_view group_key) {
  return absl::StrCat("group ",
                      absl::BytesToHexString(Secret("", group_key).Mac("railhead group name", {})));
}

}  // namespace railhead::bootstrap
