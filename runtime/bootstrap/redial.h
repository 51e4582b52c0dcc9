// SPDX-License-Identifier: Apache-2.0
//
// A new socket for a connection of the tree whose socket was lost (absence.h). Either process dials
// the other, which listens for that. Both prove again that they know the connection's secret
// (handshake.h); then the one that has dialed reports which frames have arrived (kResume), and the
// other answers so, if it continues there. Attempts are numbered: an older one does not replace a
// newer one, however late its packets arrive.
//
// Used by TreeConnections. Nothing waits; not thread-safe.
#ifndef RAILHEAD_RUNTIME_BOOTSTRAP_REDIAL_H_
#define RAILHEAD_RUNTIME_BOOTSTRAP_REDIAL_H_

#include <compare>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "runtime/bootstrap/frame.h"
#include "runtime/bootstrap/handshake.h"
#include "runtime/bootstrap/secret.h"
#include "runtime/net/fd.h"
#include "runtime/net/socket.h"

namespace railhead::bootstrap {

// kResume.
struct Resume {
  uint64_t attempt = 0;   // number of the attempt
  uint64_t received = 0;  // frames that have arrived at the sender of this
};
std::string EncodeResume(const Resume& resume);
absl::StatusOr<Resume> ParseResume(absl::string_view payload);

// Order of attempts: of two with the same number, both sides prefer the same one. `by` is a name of
// the process that has dialed.
struct Attempt {
  uint64_t number = 0;
  std::string by;

  auto operator<=>(const Attempt&) const = default;
};

// The connection, by a random name that only its two processes know, and its secret.
struct LostConnection {
  std::string name;
  Secret secret;
};

// An attempt of the process that dials.
class Redial {
 public:
  // Starts to connect. NotFound if the address refuses the connection.
  static absl::StatusOr<Redial> Start(const net::SocketAddress& place,
                                      const LostConnection& connection, const Resume& mine,
                                      absl::Time deadline);

  int fd() const { return fd_.get(); }
  absl::Time deadline() const { return deadline_; }
  uint64_t number() const { return mine_.attempt; }
  // Returns true if the peer may continue at this socket.
  bool claimed() const { return handshake_.proven(); }

  // Does what is possible without waiting. Returns the peer's answer: it continues at this socket;
  // nullopt while there is none. NotFound: nothing listens at the address, or its process does not
  // know the connection; after other errors the peer's process may live.
  absl::StatusOr<std::optional<Resume>> Advance(absl::Time now);
  // Releases the socket after the answer.
  net::Fd TakeFd() { return std::move(fd_); }
  FrameReader TakeReader() { return std::move(reader_); }

 private:
  Redial(net::Fd fd, const net::SocketAddress& place, GuestHandshake handshake, const Resume& mine,
         absl::Time deadline);

  absl::Status Receive(const Frame& frame);

  net::Fd fd_;
  net::SocketAddress place_;
  FrameReader reader_;
  GuestHandshake handshake_;
  Resume mine_;
  absl::Time deadline_;
  bool connected_ = false;
  std::optional<Resume> theirs_;
};

// A connection to the listening process.
class ReturnVisitor {
 public:
  ReturnVisitor(net::Fd fd, absl::Time deadline);

  int fd() const { return fd_.get(); }
  absl::Time deadline() const { return deadline_; }

  struct Claim {
    std::string name;  // of the connection
    Resume theirs;
  };
  // Returns the secret of a connection with this name; nullopt if there is none.
  using SecretOf = absl::FunctionRef<std::optional<Secret>(absl::string_view name)>;
  // Does what is possible without waiting. Returns the claim of an authentic peer; nullopt while
  // there is none; an error if the connection is of no use.
  absl::StatusOr<std::optional<Claim>> Advance(absl::Time now, SecretOf secret_of);
  // Releases the socket after the claim.
  net::Fd TakeFd() { return std::move(fd_); }
  FrameReader TakeReader() { return std::move(reader_); }

 private:
  absl::Status Receive(const Frame& frame, SecretOf secret_of);

  net::Fd fd_;
  FrameReader reader_;
  absl::Time deadline_;
  std::optional<HostHandshake> handshake_;
  std::optional<Claim> claim_;
};

}  // namespace railhead::bootstrap

#endif  // RAILHEAD_RUNTIME_BOOTSTRAP_REDIAL_H_
