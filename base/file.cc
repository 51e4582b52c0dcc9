// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/file_descriptor.h"

namespace railhead {
namespace {

absl::Status ErrorOf(absl::string_view verb, const std::string& path) {
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot ", verb, " ", path));
}

absl::StatusOr<std::string> ReadToTheEnd(int file, const std::string& path, size_t max_bytes) {
  constexpr size_t kPiece = size_t{64} << 10;
  std::string text;
  size_t size = 0;
  while (true) {
    // One byte more than is allowed shows that there are more.
    text.resize(size + std::min(kPiece, max_bytes + 1 - size));
    const ssize_t got = ::read(file, text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrorOf("read", path);
    size += static_cast<size_t>(got);
    if (size > max_bytes) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, " has more than the ", max_bytes, " bytes that are allowed"));
    }
    if (got == 0) break;
  }
  text.resize(size);
  return text;
}

}  // namespace

absl::StatusOr<std::string> ReadWholeFile(const std::string& path, size_t max_bytes, Links links) {
  const int flags =
      O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (links == Links::kRefuse ? O_NOFOLLOW : 0);
  const FileDescriptor file(::open(path.c_str(), flags));
  if (!file.valid()) return ErrorOf("open", path);
  struct stat info = {};
  if (::fstat(file.get(), &info) != 0) return ErrorOf("examine", path);
  if (!S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is not a regular file"));
  }
  return ReadToTheEnd(file.get(), path, max_bytes);
}

absl::StatusOr<std::string> ReadInput(const std::string& path, size_t max_bytes) {
  if (path == "-") return ReadToTheEnd(STDIN_FILENO, "standard input", max_bytes);
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!file.valid()) return ErrorOf("open", path);
  return ReadToTheEnd(file.get(), path, max_bytes);
}

}  // namespace railhead
