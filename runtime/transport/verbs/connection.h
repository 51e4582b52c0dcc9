// SPDX-License-Identifier: Apache-2.0
//
// How a queue pair gets connected to the peer's: over InfiniBand and RoCE by what both sides know
// of each other (PathConnection), over iWARP by a connection manager (cm_dialer.h, cm_acceptor.h).
#ifndef RAILHEAD_RUNTIME_TRANSPORT_VERBS_CONNECTION_H_
#define RAILHEAD_RUNTIME_TRANSPORT_VERBS_CONNECTION_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/transport/verbs/queue_pair.h"

namespace railhead::transport::verbs {

// Used by one thread at a time; nothing in it blocks.
class Connection {
 public:
  virtual ~Connection() = default;

  // Begins to connect `pair`, which has its receives; once. The peer does the same.
  virtual absl::Status Begin(std::shared_ptr<QueuePair> pair) = 0;
  // Returns whether the queue pair may send. An error is the end of the connection.
  virtual absl::StatusOr<bool> Advance() = 0;

  // Whether this side may send before the peer has.
  virtual bool speaks_first() const = 0;
  // How long after its greeting a side that hears nothing sends something more, and again.
  virtual absl::Duration reminder() const { return absl::InfiniteDuration(); }
  // Both sides have heard each other.
  virtual void Settle() {}

  // Readable when Advance has something to do; -1 when it never has.
  virtual int event_fd() const { return -1; }
};

// Connects as soon as it begins.
class PathConnection final : public Connection {
 public:
  // `psn`: of the first packet that this side sends, `peer_psn`: that the peer sends.
  PathConnection(const PeerPath& path, uint32_t psn, uint32_t peer_psn)
      : path_(path), psn_(psn), peer_psn_(peer_psn) {}

  absl::Status Begin(std::shared_ptr<QueuePair> pair) override {
    return pair->Connect(path_, peer_psn_, psn_);
  }
  absl::StatusOr<bool> Advance() override { return true; }
  bool speaks_first() const override { return true; }

 private:
  const PeerPath path_;
  const uint32_t psn_;
  const uint32_t peer_psn_;
};

}  // namespace railhead::transport::verbs

#endif  // RAILHEAD_RUNTIME_TRANSPORT_VERBS_CONNECTION_H_
