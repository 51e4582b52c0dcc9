// SPDX-License-Identifier: Apache-2.0
//
// Connection setup of a queue pair: over InfiniBand and RoCE from exchanged information
// (PathConnection), over iWARP by a connection manager (cm_dialer.h, cm_acceptor.h).
#ifndef RAILHEAD_RUNTIME_TRANSPORT_VERBS_CONNECTION_H_
#define RAILHEAD_RUNTIME_TRANSPORT_VERBS_CONNECTION_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/transport/verbs/queue_pair.h"

namespace railhead::transport::verbs {

// Use from one thread at a time; no call blocks.
class Connection {
 public:
  virtual ~Connection() = default;

  // Starts to connect `pair`, which has its receives posted. Call once; the peer does the same.
  virtual absl::Status Begin(std::shared_ptr<QueuePair> pair) = 0;
  // Returns true when the queue pair may send. An error ends the connection.
  virtual absl::StatusOr<bool> Advance() = 0;

  // Returns true if this side may send before the peer has.
  virtual bool speaks_first() const = 0;
  // Interval at which a side without an answer to its greeting sends it again.
  virtual absl::Duration reminder() const { return absl::InfiniteDuration(); }
  // Called after both sides received each other's greeting.
  virtual void Settle() {}

  // Readable when Advance has work; -1 if it never has.
  virtual int event_fd() const { return -1; }
};

// Connects immediately.
class PathConnection final : public Connection {
 public:
  // `psn`: of this side's first packet; `peer_psn`: of the peer's.
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
