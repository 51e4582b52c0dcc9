// SPDX-License-Identifier: Apache-2.0
//
// How a queue pair gets connected to the peer's: over InfiniBand and RoCE by what both sides know
// of each other (PathConnection), over iWARP by a connection manager (cm_dialer.h, cm_acceptor.h).
#ifndef RAILHEAD_RUNTIME_TRANSPORT_VERBS_CONNECTION_H_
#define RAILHEAD_RUNTIME_TRANSPORT_VERBS_CONNECTION_H_

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/transport/verbs/queue_pair.h"

namespace railhead::transport::verbs {

// Used by one thread at a time; nothing in it blocks.
class Connection {
 public:
  enum class State {
    kUnderway,
    kUp,      // the queue pair may send
    kFailed,  // this time: reset the queue pair, and Begin again
  };

  virtual ~Connection() = default;

  // Begins to connect `pair`, which is initialized and has its receives, and has received `heard`
  // messages in its earlier lives.
  virtual absl::Status Begin(std::shared_ptr<QueuePair> pair, uint32_t heard) = 0;
  virtual absl::StatusOr<State> Advance() = 0;

  // Whether this side may send before the peer has.
  virtual bool speaks_first() const = 0;
  // Whether it is another connection after it has failed, over which nothing was heard yet.
  virtual bool begins_anew() const = 0;
  // Whether a request that ended so, before the peer was known to listen, is no error: the
  // connection has failed this time.
  virtual bool MayFailWith(ibv_wc_status status) const = 0;
  // How long after its greeting a side that hears nothing sends something more, and again.
  virtual absl::Duration reminder() const { return absl::InfiniteDuration(); }
  // Both sides have heard each other.
  virtual void Settle() {}

  // Readable when Advance has something to do; -1 when it never has.
  virtual int event_fd() const { return -1; }
  // Why it failed the last time, as the end of a sentence; "" when it has not.
  virtual std::string trouble() const { return ""; }
};

// Connects as soon as it begins, whether the peer is there or not.
class PathConnection final : public Connection {
 public:
  // `psn`: of the first packet that this side sends, `peer_psn`: that the peer sends.
  PathConnection(const PeerPath& path, uint32_t psn, uint32_t peer_psn)
      : path_(path), psn_(psn), peer_psn_(peer_psn) {}

  absl::Status Begin(std::shared_ptr<QueuePair> pair, uint32_t heard) override {
    return pair->Connect(path_, (peer_psn_ + heard) & 0xffffff, psn_);
  }
  absl::StatusOr<State> Advance() override { return State::kUp; }
  bool speaks_first() const override { return true; }
  bool begins_anew() const override { return false; }
  bool MayFailWith(ibv_wc_status status) const override { return status == IBV_WC_RETRY_EXC_ERR; }

 private:
  const PeerPath path_;
  const uint32_t psn_;
  const uint32_t peer_psn_;
};

}  // namespace railhead::transport::verbs

#endif  // RAILHEAD_RUNTIME_TRANSPORT_VERBS_CONNECTION_H_
