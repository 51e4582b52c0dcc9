// SPDX-License-Identifier: Apache-2.0
#include "runtime/bootstrap/secret.h"

#include <fcntl.h>
#include <sodium/crypto_auth_hmacsha256.h>
#include <sodium/utils.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/wire.h"
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

static_assert(crypto_auth_hmacsha256_BYTES == kProofSize);

const unsigned char* BytesOf(absl::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

std::string Hmac(absl::string_view key, absl::string_view bytes) {
  crypto_auth_hmacsha256_state state;
  crypto_auth_hmacsha256_init(&state, BytesOf(key), key.size());
  crypto_auth_hmacsha256_update(&state, BytesOf(bytes), bytes.size());
  std::string out(kProofSize, '\0');
  crypto_auth_hmacsha256_final(&state, reinterpret_cast<unsigned char*>(out.data()));
  return out;
}

std::string Join(absl::string_view label, std::initializer_list<absl::string_view> parts) {
  WireWriter writer;
  writer.String(label);
  for (const absl::string_view part : parts) writer.String(part);
  return writer.Take();
}

absl::Status WrongFile(absl::StatusCode code, absl::string_view file, absl::string_view what) {
  return absl::Status(code, absl::StrCat(file, " ", what, ": ", kAdvice));
}

}  // namespace

Secret::Secret(absl::string_view file, absl::string_view group_key)
    : has_file_(!file.empty()), proves_(!file.empty() || !group_key.empty()) {
  if (proves_) key_ = Hmac(file, Join("railhead job", {group_key}));
}

std::string Secret::Mac(absl::string_view label,
                        std::initializer_list<absl::string_view> parts) const {
  return Hmac(key_, Join(label, parts));
}

Secret Secret::ForSession(absl::string_view session) const {
  return Secret(Mac("railhead session", {session}), has_file_, proves_);
}

bool SameProof(absl::string_view a, absl::string_view b) {
  return a.size() == kProofSize && b.size() == kProofSize &&
         ::sodium_memcmp(a.data(), b.data(), kProofSize) == 0;
}

absl::StatusOr<std::string> RandomBytes(size_t size) {
  std::string bytes(size, '\0');
  if (::getrandom(bytes.data(), size, 0) != static_cast<ssize_t>(size)) {
    return net::ErrnoError("getrandom", errno);
  }
  return bytes;
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
                     absl::StrCat("has more than ", kLongest, " bytes and is no secret"));
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
                          " may be read by every user: chmod o-r, or give the Secret's volume "
                          "defaultMode: 0440 and the pod an fsGroup"));
  }
  return text;
}

std::string GroupName(absl::string_view group_key) {
  return absl::StrCat("group ",
                      absl::BytesToHexString(Secret("", group_key).Mac("railhead group name", {})));
}

}  // namespace railhead::bootstrap
