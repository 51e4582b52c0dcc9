// SPDX-License-Identifier: Apache-2.0
//
// A queue pair of iWARP, which has no write with immediate. A message is a write, where it has
// bytes, and a send of four bytes with its value: both go over one TCP stream, so the value arrives
// when the bytes are in place (RFC 5041, section 5.3: delivery is in order).
//
// A write or a send is complete when TCP has it, which says nothing of the peer. What is asked for
// as a completion here is therefore that of a read of a few bytes: the peer's NIC answers it,
// behind everything that was sent before (RFC 5040, section 5.5), and without its process. So a
// completion means what it means over InfiniBand: memory may be used again that TCP may still have
// had to repeat, and a peer that is gone is noticed. TCP would be patient with it for a quarter of
// an hour. What is read is the beginning of the peer's ring, where only this side writes; its value
// means nothing. (A read of nothing would do, but siw now and then answers one with something.)
// More than 32 bytes, for siw copies fewer along with the header, from its own thread as if from a
// system call when one is just ending on the same queue pair: that fails, and ends the connection.
#ifndef RAILHEAD_RUNTIME_TRANSPORT_VERBS_IWARP_PAIR_H_
#define RAILHEAD_RUNTIME_TRANSPORT_VERBS_IWARP_PAIR_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/transport/verbs/queue_pair.h"

namespace railhead::transport::verbs {

class IwarpPair final : public QueuePair {
 public:
  static constexpr uint32_t kRequestsPerSend = 3;  // write, send and read

  static absl::StatusOr<std::unique_ptr<QueuePair>> Create(
      const DevicePort& port, std::shared_ptr<CompletionQueue> completions, QueueDepths depths);
  ~IwarpPair() override;

  absl::Status PostReceives(uint32_t count, uint64_t id) override;
  absl::Status Send(const Message& message, uint64_t id, bool signaled) override;
  // A read.
  absl::Status Probe(uint64_t id, uint64_t remote_address, uint32_t remote_key) override;
  absl::StatusOr<uint32_t> Take(const ibv_wc& completion) override;
  // TCP repeats a lost packet after a fifth of a second, then after twice as long, and again; and a
  // slow rail may have to send a quarter of a second's worth before the read.
  absl::Duration patience() const override { return absl::Seconds(3); }

 private:
  IwarpPair(const DevicePort& port, std::shared_ptr<CompletionQueue> completions,
            QueueDepths depths);
  // The memory of values to be sent, in turn, and behind them of those received.
  std::byte* Sent(uint64_t number) { return values_.data() + number % depths().send * kValueSize; }
  std::byte* Received(uint64_t number) {
    return values_.data() + (depths().send + number % depths().receive) * kValueSize;
  }
  static constexpr size_t kValueSize = sizeof(uint32_t);
  static constexpr size_t kReadSize = 64;
  std::vector<std::byte> values_;
  Owned<ibv_mr> region_;
  // Where reads go: by the rules of iWARP, memory that the peer may write.
  std::vector<std::byte> sink_;
  Owned<ibv_mr> sink_region_;
  uint64_t sent_ = 0;
  // Receives complete in the order in which they were posted.
  uint64_t posted_ = 0;
  uint64_t taken_ = 0;
};

}  // namespace railhead::transport::verbs

#endif  // RAILHEAD_RUNTIME_TRANSPORT_VERBS_IWARP_PAIR_H_
