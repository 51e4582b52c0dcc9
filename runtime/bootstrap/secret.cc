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
    "create one with 'openssl rand -hex 32' and give all ranks the same secret";

// Place of a secret, and texts for messages about it.
struct Place {
  const std::string& path;
  std::string name;
  absl::string_view advice;
};

absl::Status WrongFile(const Place& place, absl::StatusCode code, absl::string_view what) {
  return absl::Status(code, absl::StrCat(place.name, " ", what, ": ", place.advice));
}

struct Contents {
  std::string secret;
  bool is_public = false;  // every user may read it
};

absl::StatusOr<Contents> Read(const Place& place) {
  const net::Fd fd(::open(place.path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) {
    const absl::Status error = net::ErrnoError("cannot be opened", errno);
    return WrongFile(place, error.code(), error.message());
  }
  Contents contents;
  std::string& text = contents.secret;
  text.resize(kLongest + 1);
  const ssize_t got = ::read(fd.get(), text.data(), text.size());
  if (got < 0) {
    const absl::Status error = net::ErrnoError("cannot be read", errno);
    return WrongFile(place, error.code(), error.message());
  }
  text.resize(static_cast<size_t>(got));
  if (text.size() > kLongest) {
    return WrongFile(place, absl::StatusCode::kInvalidArgument,
                     absl::StrCat("has more than ", kLongest, " bytes and is not a secret"));
  }
  text.resize(text.find_last_not_of("\r\n") + 1);
  if (text.size() < kShortest) {
    return WrongFile(
        place, absl::StatusCode::kInvalidArgument,
        text.empty() ? "is empty" : absl::StrCat("has fewer than ", kShortest, " bytes"));
  }
  struct stat about {};
  contents.is_public = ::fstat(fd.get(), &about) == 0 && (about.st_mode & S_IROTH) != 0;
  return contents;
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
  const Place place = {path, absl::StrCat(set_by, "=", path), kAdvice};
  absl::StatusOr<Contents> contents = Read(place);
  if (!contents.ok()) return contents.status();
  if (contents->is_public) {
    log.Warn(absl::StrCat(place.name,
                          " is readable by every user: chmod o-r, or give the Secret's volume "
                          "defaultMode: 0440 and the pod an fsGroup"));
  }
  return std::move(contents->secret);
}

absl::StatusOr<std::string> ReadGivenSecretFile(const std::string& path) {
  absl::StatusOr<Contents> contents =
      Read({path, path,
            "the node agent should have written a secret; recreate the pod, or set "
            "RAILHEAD_SECRET_FILE"});
  if (!contents.ok()) return contents.status();
  return std::move(contents->secret);
}

std::string GroupName(absl::string_view group_key) {
  return absl::StrCat("group ",
                      absl::BytesToHexString(Secret("", group_key).Mac("railhead group name", {})));
}

}  // namespace railhead::bootstrap
