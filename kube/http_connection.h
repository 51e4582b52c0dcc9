// SPDX-License-Identifier: Apache-2.0
//
// Private to http_server.cc: one accepted socket, with TLS or without. Nothing here blocks.
#ifndef RAILHEAD_KUBE_HTTP_CONNECTION_H_
#define RAILHEAD_KUBE_HTTP_CONNECTION_H_

#include <openssl/ssl.h>
#include <sys/types.h>

#include <cstddef>

#include "absl/strings/string_view.h"

namespace railhead::kube {

// Used by one thread.
class Connection final {
 public:
  explicit Connection(int fd);  // takes the socket, which does not block
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  enum class Io {
    kDone,
    kWantsRead,   // call again when the socket is readable
    kWantsWrite,  // call again when it is writable
    kEnded,       // by the client, or by an error
  };
  struct Result {
    Io io = Io::kEnded;
    size_t bytes = 0;  // read or written; at least 1 in kDone
  };

  // Goes on with the TLS handshake. Only the first call looks at `context`.
  Io AdvanceTls(SSL_CTX* context);
  Result Read(char* out, size_t size);
  Result Write(absl::string_view bytes);
  // Bytes have arrived that the socket does not report as readable any more.
  bool HasBuffered() const;
  // Tells the client that nothing more will come. To close at once while it is still sending would
  // make the kernel reset the connection, and the client would lose the answer.
  void EndWriting();
  int fd() const { return fd_; }

 private:
  Result ResultOf(ssize_t result) const;

  int fd_;
  SSL* ssl_ = nullptr;
};

}  // namespace railhead::kube

#endif  // RAILHEAD_KUBE_HTTP_CONNECTION_H_
