// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/verbs/self_pair.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/now.h"
#include "runtime/transport/verbs/address.h"
#include "runtime/transport/verbs/gid.h"
#include "runtime/transport/verbs/offer.h"
#include "runtime/transport/verbs/slot.h"

namespace railhead::transport::verbs {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(1);
constexpr QueueDepths kDepths = {.send = 1, .receive = 1};
// Of the first packet; it is only this side's own.
constexpr uint32_t kPsn = 1;
constexpr size_t kPatternBytes = 64;
constexpr char kActive[] = "ACTIVE";

absl::StatusOr<PeerPath> PathToSelf(const DevicePort& port, const ImmediatePair& pair) {
  const absl::StatusOr<PortState> state = port.Read();
  if (!state.ok()) return state.status();
  VerbsAddress own;
  own.needs_grh = (state->attributes.flags & IBV_QPF_GRH_REQUIRED) != 0;
  own.lid = state->attributes.lid;
  own.gids = state->gids;
  absl::StatusOr<ibv_ah_attr> route =
      RouteTo(port, *state, own, CommonGids(state->gids, state->gids));
  if (!route.ok()) return route.status();
  return PeerPath{.qp_number = pair.number(),
                  .mtu = state->attributes.active_mtu,
                  .pkey_index = port.pkeys().front().index,
                  .route = *route};
}

}  // namespace

absl::StatusOr<std::unique_ptr<SelfPair>> SelfPair::Create(std::shared_ptr<const DevicePort> port) {
  if (port->iwarp()) {
    return absl::FailedPreconditionError(
        absl::StrCat(port->name(), ": an iWARP device cannot connect to itself"));
  }
  absl::StatusOr<Ring> ring = Ring::Create(*port, Ring::Use::kReceive, 1, kSlotPayload);
  if (!ring.ok()) return ring.status();
  return std::unique_ptr<SelfPair>(new SelfPair(std::move(port), *std::move(ring)));
}

absl::Status SelfPair::Connect() {
  absl::StatusOr<std::shared_ptr<CompletionQueue>> completions =
      CompletionQueue::Create(*port_, QueuePair::CompletionsOf(*port_, kDepths));
  if (!completions.ok()) return completions.status();
  absl::StatusOr<std::unique_ptr<ImmediatePair>> pair =
      ImmediatePair::CreateReadable(*port_, *completions, kDepths);
  if (!pair.ok()) return pair.status();
  const absl::StatusOr<PeerPath> path = PathToSelf(*port_, **pair);
  if (!path.ok()) return path.status();
  absl::Status connected = (*pair)->Connect(*path, kPsn, kPsn, /*reads=*/1);
  if (!connected.ok()) return connected;
  completions_ = *std::move(completions);
  pair_ = *std::move(pair);
  return absl::OkStatus();
}

absl::Status SelfPair::Run(absl::FunctionRef<absl::Status(uint64_t id)> post) {
  if (const std::string state = port_->StateNow(); state != kActive) {
    return absl::UnavailableError(absl::StrCat(port_->name(), ": the port is ", state));
  }
  if (pair_ == nullptr) {
    if (absl::Status connected = Connect(); !connected.ok()) return connected;
  }
  absl::Status run = RunOnce(post);
  if (!run.ok()) pair_.reset();
  return run;
}

absl::Status SelfPair::RunOnce(absl::FunctionRef<absl::Status(uint64_t id)> post) {
  const uint64_t id = ++last_id_;
  if (absl::Status posted = post(id); !posted.ok()) return posted;
  const absl::Time deadline = MonotonicNow() + kPatience;
  bool done = false;
  while (true) {
    absl::Status drained = completions_->Drain([&](const ibv_wc& completion) {
      if (completion.status != IBV_WC_SUCCESS) {
        return absl::InternalError(absl::StrCat(port_->name(), " cannot access the memory: ",
                                                port_->api().WcStatusText(completion.status),
                                                " (status ", static_cast<int>(completion.status),
                                                ", vendor error ", completion.vendor_err, ")"));
      }
      done = done || completion.wr_id == id;
      return absl::OkStatus();
    });
    if (done || !drained.ok()) return drained;
    if (MonotonicNow() >= deadline) {
      return absl::InternalError(
          absl::StrCat(port_->name(), " has not completed an access to memory of this node within ",
                       absl::FormatDuration(kPatience)));
    }
    std::this_thread::yield();
  }
}

absl::Status SelfPair::ReadOnce(uint64_t address, uint32_t key, size_t size) {
  const LocalBytes into = {{ring_.Slot(0), size}, ring_.local_key()};
  return Run([&](uint64_t id) { return pair_->PostRead(into, address, key, id); });
}

absl::Status SelfPair::Write(uint64_t to, uint32_t key, absl::Span<const std::byte> from) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (size_t done = 0; done < from.size();) {
    const size_t size = std::min<size_t>(from.size() - done, ring_.slot_payload());
    std::memcpy(ring_.Slot(0), from.data() + done, size);
    Message message;
    message.placed = {{ring_.Slot(0), size}, ring_.local_key()};
    message.placed_address = to + done;
    message.placed_key = key;
    absl::Status written = Run([&](uint64_t id) { return pair_->PostWrite(message, id); });
    if (!written.ok()) return written;
    done += size;
  }
  return absl::OkStatus();
}

absl::Status SelfPair::Read(uint64_t address, uint32_t key, absl::Span<std::byte> to) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (size_t done = 0; done < to.size();) {
    const size_t size = std::min<size_t>(to.size() - done, ring_.slot_payload());
    if (absl::Status read = ReadOnce(address + done, key, size); !read.ok()) return read;
    std::memcpy(to.data() + done, ring_.Slot(0), size);
    done += size;
  }
  return absl::OkStatus();
}

absl::Status SelfPair::Flush(uint64_t address, uint32_t key) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return ReadOnce(address, key, 1);
}

absl::Status SelfPair::Verify(uint64_t address, uint32_t key, size_t size) {
  std::array<std::byte, kPatternBytes> before{};
  std::array<std::byte, kPatternBytes> pattern{};
  std::array<std::byte, kPatternBytes> after{};
  size = std::min(size, kPatternBytes);
  const auto part = [size](auto& bytes) { return absl::MakeSpan(bytes).first(size); };
  if (absl::Status read = Read(address, key, part(before)); !read.ok()) return read;
  for (size_t i = 0; i < size; ++i) pattern[i] = before[i] ^ static_cast<std::byte>(0xa5 + i);
  absl::Status tried = Write(address, key, part(pattern));
  if (tried.ok()) tried = Read(address, key, part(after));
  absl::Status restored = Write(address, key, part(before));
  if (!tried.ok()) return tried;
  if (!restored.ok()) return restored;
  if (std::equal(pattern.begin(), pattern.begin() + static_cast<ptrdiff_t>(size), after.begin())) {
    return absl::OkStatus();
  }
  return absl::InternalError(absl::StrCat(
      port_->name(),
      " reads other bytes than it has written: the path between NIC and device loses data; check "
      "ACS and IOMMU settings of the node"));
}

}  // namespace railhead::transport::verbs
