// SPDX-License-Identifier: Apache-2.0
//
// A connection of NCCL: messages in one direction, from a sender to a receiver in another process,
// over all rails that both have. Made of the runtime's parts: rails::Peer stripes, fails over and
// takes rails back; transfers::Engine matches messages and receives by tag.
//
// The caller's thread does the work in Test. Between calls, the process's progress thread
// (net/watch_thread.h) connects rails, acknowledges, and repeats the frames of a lost rail.
#ifndef RAILHEAD_PLUGINS_NCCL_CONNECTION_H_
#define RAILHEAD_PLUGINS_NCCL_CONNECTION_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "plugins/nccl/memory.h"
#include "plugins/nccl/presence.h"
#include "runtime/metrics/exporter.h"
#include "runtime/net/socket.h"
#include "runtime/net/watch_thread.h"
#include "runtime/rails/mesh.h"
#include "runtime/rails/peer.h"
#include "runtime/rails/rail_totals.h"
#include "runtime/transfers/engine.h"
#include "runtime/transport/wake_event.h"

namespace railhead::nccl {

// Maximum number of receives of a group, as in NCCL's own transports.
inline constexpr int kMostReceives = 8;
// Tags are at most this.
inline constexpr int kLargestTag = 0x7ffffffd;

// Thread-safe.
class Connection final : private net::WatchThread::Client {
 public:
  struct Options {
    std::unique_ptr<rails::Peer> peer;
    std::string peer_name;
    // The sender's acceptor addresses, by rail, for the receiver; empty on the receiver's side.
    std::vector<std::string> addresses;
    // Addresses where the other process listens, if known; a receiver gets them from the sender.
    std::vector<net::SocketAddress> places;
    std::shared_ptr<transport::WakeEvent> wake;  // of the acceptors of its rails
    // Shows its rails on the metrics page; null: they are not shown.
    std::function<std::unique_ptr<metrics::Exporter::Registration>(
        std::function<std::vector<rails::RailTotals>()> read)>
        show;
    // Kept as long as the connection.
    std::shared_ptr<const void> speaker;
    // The devices of its rails; null: a TCP rail. They outlive the connection.
    std::vector<comm::RdmaRail*> devices;
    // The rail of the NIC that NCCL has chosen, at the sender; nullopt: it is none of the rails.
    std::optional<size_t> home = std::nullopt;
    Logger log;
    // Held during its work: connections from one listener share their acceptors.
    std::shared_ptr<std::mutex> mutex;
    // Without a rail for this long, it ends with an error.
    absl::Duration timeout;
  };
  static absl::StatusOr<std::unique_ptr<Connection>> Open(Options options);
  // Its requests must be done, or are given up with it.
  ~Connection() override;

  // A send, or a group of receives. Owned by the connection until it is done.
  class Request;

  // Registers memory with all rails (memory.h). It must be destroyed before the connection.
  absl::StatusOr<std::unique_ptr<Memory>> Register(absl::Span<std::byte> memory, bool on_gpu,
                                                   const device::DmaBuf* buffer) const;

  // Both return at once. The memory must stay valid until the request is done; `memory` is the
  // registered memory that contains it, or null.
  absl::StatusOr<Request*> Send(absl::Span<const std::byte> data, int tag,
                                const Memory* memory = nullptr);
  struct Slot {
    std::byte* data = nullptr;
    size_t size = 0;  // maximum
    int tag = 0;
    const Memory* memory = nullptr;
  };
  absl::StatusOr<Request*> Receive(absl::Span<const Slot> group);
  // Makes what was received at this address of GPU memory visible to the GPU. Waits for the NICs,
  // some microseconds.
  absl::Status Flush(const Memory& memory, const std::byte* address) const;
  // Works. Returns true once the request is done, and destroys it; `sizes`, if not null, gets the
  // size of each message of the request.
  absl::StatusOr<bool> Test(Request* request, int* sizes);
  // Sends a close notice, and waits until all messages are acknowledged: at most until the
  // deadline, 20 ms if requests are open, and not if the other side has sent its notice. Call it
  // before destruction: the other side treats an end without a notice as a lost network.
  void Settle(absl::Time deadline);

 private:
  explicit Connection(const Options& options);

  std::optional<absl::Time> Turn() override;

  // All are called with the mutex held.
  absl::Status Work();
  absl::Status Move();
  // Handles the other side's addresses and its close notice, if they have arrived.
  void TakeNotes();
  bool HasLeft() const { return close_notice_ == nullptr; }
  absl::Status CheckRails(absl::Time now);
  // Posts a message of this class itself, or a receive for one.
  Request* PostNote(transfers::Direction direction, int tag, std::string& text);
  Request* Post(std::unique_ptr<Request> request);
  // GPU memory is near the NIC that NCCL has chosen: a NIC below another CPU reaches it slowly. So
  // with such memory on either side, other rails carry data only while that one is lost.
  void PreferHome(const Memory* memory);

  static constexpr int kSelf = 0;
  static constexpr int kPeer = 1;

  const std::string peer_name_;
  const std::shared_ptr<std::mutex> mutex_;
  const absl::Duration timeout_;
  std::shared_ptr<net::WatchThread> thread_;
  const std::shared_ptr<const void> speaker_;
  const std::vector<comm::RdmaRail*> devices_;
  std::optional<size_t> home_;  // until it is preferred
  const Logger log_;
  rails::Peer* peer_ = nullptr;  // the mesh's
  std::unique_ptr<metrics::Exporter::Registration> shown_;
  std::unique_ptr<rails::Mesh> mesh_;
  std::unique_ptr<transfers::Engine> engine_;
  std::vector<std::unique_ptr<Request>> requests_;
  // Messages of this class, and receives for them.
  std::vector<std::unique_ptr<Request>> notes_;
  std::string own_addresses_;
  std::string their_addresses_;
  std::string nothing_;
  Request* addresses_come_ = nullptr;
  Request* close_notice_ = nullptr;
  absl::Status error_;  // final
  Presence presence_;
  bool was_up_ = false;    // a rail
  bool was_used_ = false;  // by a request
  bool closing_ = false;
  bool visited_ = false;  // by a caller, since the thread's last turn
  absl::Time last_up_;    // when a rail was last seen up
};

}  // namespace railhead::nccl

#endif  // RAILHEAD_PLUGINS_NCCL_CONNECTION_H_
