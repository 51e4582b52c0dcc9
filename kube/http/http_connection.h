// SPDX-License-Identifier: Apache-2.0
//
// One accepted socket, with or without TLS. Private to http_server.cc. No call blocks.
#ifndef RAILHEAD_KUBE_HTTP_HTTP_CONNECTION_H_
#define RAILHEAD_KUBE_HTTP_HTTP_CONNECTION_H_

#include <openssl/ssl.h>
#include <sys/types.h>

#include <cstddef>

#include "absl/strings/string_view.h"
#include "base/file_descriptor.h"

namespace railhead::kube {

// Use from one thread.
class Connection final {
 public:
  explicit Connection(FileDescriptor fd);  // a non-blocking socket
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  enum class Io {
    kDone,
    kWantsRead,   // call again when the socket is readable
    kWantsWrite,  // call again when the socket is writable
    kEnded,       // closed by the client or failed
  };
  struct Result {
    Io io = Io::kEnded;
    size_t bytes = 0;  // read or written; at least 1 with kDone
  };

  // Continues the TLS handshake. Only the first call uses `context`.
  Io AdvanceTls(SSL_CTX* context);
  Result Read(char* out, size_t size);
  Result Write(absl::string_view bytes);
  // Returns true if bytes were read from the socket but not yet returned, so that poll() does not
  // report them.
  bool HasBuffered() const;
  // Shuts down the sending direction. Closing while the client still sends would reset the
  // connection, and the client would lose the response.
  void EndWriting();
  int fd() const { return fd_.get(); }

 private:
  Result ResultOf(ssize_t result) const;

  FileDescriptor fd_;
  SSL* ssl_ = nullptr;
};

}  // namespace railhead::kube

#endif  // RAILHEAD_KUBE_HTTP_HTTP_CONNECTION_H_
