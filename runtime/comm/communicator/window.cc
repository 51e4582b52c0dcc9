// SPDX-License-Identifier: Apache-2.0
//
// Windows: exchange of memory of rhMemAlloc between ranks that share memory. Each rank offers one
// piece, all ranks learn all offers, and each then receives the segments of its place from their
// owners.
#include "runtime/shm/window.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "runtime/base/halt.h"
#include "runtime/base/now.h"
#include "runtime/base/parts.h"
#include "runtime/base/wire.h"
#include "runtime/bootstrap/watch.h"
#include "runtime/collectives/collective.h"
#include "runtime/comm/communicator/direct_memory.h"
#include "runtime/shm/allocation.h"
#include "runtime/shm/segment.h"
#include "runtime/shm/segment_server.h"

namespace railhead::comm {
namespace {

// Passing a descriptor takes microseconds; a rank that takes longer does not take part.
constexpr absl::Duration kLongestTrade = absl::Seconds(10);

// A rank's offer to the others.
struct Offer {
  bool ok = false;
  std::string address;  // of the owner's SegmentServer; a secret
  uint64_t segment_bytes = 0;
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

// A rank's own part of a window.
class OwnWindow {
 public:
  // Returns InvalidArgument if the memory was not allocated with rhMemAlloc.
  static absl::StatusOr<OwnWindow> Make(std::byte* memory, size_t bytes);

  const Offer& offer() const { return offer_; }

  // `offers`: those of all ranks of a place, in their order, all valid; this rank's has index
  // `self`. All of them must call it.
  absl::StatusOr<shm::Window> Trade(absl::Span<const Offer> offers, size_t self,
                                    absl::Time deadline, const Halt& halt) const;

 private:
  OwnWindow(std::byte* memory, std::shared_ptr<const shm::Segment> segment,
            shm::SegmentServer server)
      : memory_(memory), segment_(std::move(segment)), server_(std::move(server)) {}

  std::byte* memory_;
  std::shared_ptr<const shm::Segment> segment_;
  shm::SegmentServer server_;
  Offer offer_;
};

// Has a fixed size.
std::string Encode(const Offer& offer) {
  WireWriter writer;
  writer.U8(offer.ok ? 1 : 0);
  writer.U64(offer.segment_bytes);
  writer.U64(offer.offset);
  writer.U64(offer.bytes);
  std::string address = offer.address;
  address.resize(shm::SegmentServer::kAddressSize);
  writer.Raw(address);
  return writer.Take();
}

absl::StatusOr<Offer> ParseOffer(absl::string_view bytes) {
  WireReader reader(bytes);
  Offer offer;
  offer.ok = reader.U8() == 1;
  offer.segment_bytes = reader.U64();
  offer.offset = reader.U64();
  offer.bytes = reader.U64();
  offer.address = std::string(reader.Raw(shm::SegmentServer::kAddressSize));
  if (!reader.Complete() || offer.offset > offer.segment_bytes ||
      offer.bytes > offer.segment_bytes - offer.offset) {
    return absl::InternalError("a rank's offer of a window is malformed");
  }
  return offer;
}

absl::StatusOr<OwnWindow> OwnWindow::Make(std::byte* memory, size_t bytes) {
  std::shared_ptr<const shm::Segment> segment = shm::SegmentOf(memory, bytes);
  if (segment == nullptr) {
    return absl::InvalidArgumentError("the memory is not all from one call of rhMemAlloc");
  }
  absl::StatusOr<shm::SegmentServer> server = shm::SegmentServer::Open();
  if (!server.ok()) return server.status();
  OwnWindow window(memory, std::move(segment), *std::move(server));
  window.offer_ = {true, window.server_.address(), window.segment_->size(),
                   static_cast<uint64_t>(memory - window.segment_->data()), bytes};
  return window;
}

absl::StatusOr<shm::Window> OwnWindow::Trade(absl::Span<const Offer> offers, size_t self,
                                             absl::Time deadline, const Halt& halt) const {
  shm::Window window;
  // One owner after the other: an owner does not receive while it gives, so each rank waits for one
  // event.
  for (size_t rank = 0; rank < offers.size(); ++rank) {
    const Offer& offer = offers[rank];
    if (rank == self) {
      absl::Status given =
          server_.Give(*segment_, static_cast<int>(offers.size()) - 1, deadline, halt);
      if (!given.ok()) return given;
      window.segments.push_back(segment_);
      window.memory.emplace_back(memory_, offer.bytes);
      continue;
    }
    absl::StatusOr<shm::Segment> taken =
        shm::Take(offer.address, offer.segment_bytes, deadline, halt);
    if (!taken.ok()) return taken.status();
    window.segments.push_back(std::make_shared<const shm::Segment>(*std::move(taken)));
    window.memory.emplace_back(window.segments.back()->data() + offer.offset, offer.bytes);
  }
  return window;
}

}  // namespace

absl::StatusOr<size_t> DirectMemory::OpenWindow(std::byte* memory, size_t bytes,
                                                const absl::Status& wrong) {
  const absl::StatusOr<OwnWindow> own = wrong.ok() ? OwnWindow::Make(memory, bytes) : wrong;
  const std::string mine = Encode(own.ok() ? own->offer() : Offer());
  const auto ranks = static_cast<size_t>(owner_.world_size);
  std::string all(ranks * mine.size(), '\0');
  absl::Status known = owner_.executor.Run({.collective = collectives::Collective::kAllGather,
                                            .ranks = owner_.world_size,
                                            .send = reinterpret_cast<const std::byte*>(mine.data()),
                                            .receive = reinterpret_cast<std::byte*>(all.data()),
                                            .receive_parts = Parts(ranks, all.size())});
  if (!known.ok()) return known;
  if (!own.ok()) return own.status();
  std::vector<Offer> offers;
  for (size_t rank = 0; rank < ranks; ++rank) {
    absl::StatusOr<Offer> offer =
        ParseOffer(absl::string_view(all).substr(rank * mine.size(), mine.size()));
    if (!offer.ok()) return offer.status();
    if (!offer->ok) {
      return absl::InvalidArgumentError(
          absl::StrCat("rank ", rank, " cannot share its memory; see its log"));
    }
    offers.push_back(*std::move(offer));
  }
  shm::Group* const group = owner_.paths.GroupHere();
  if (group == nullptr) return 0;

  auto self = static_cast<size_t>(owner_.rank);
  if (owner_.paths.hierarchy != nullptr) {
    const std::vector<int>& here = owner_.paths.hierarchy->here();
    std::vector<Offer> of_place;
    of_place.reserve(here.size());
    for (const int rank : here) of_place.push_back(offers[static_cast<size_t>(rank)]);
    offers = std::move(of_place);
    self = static_cast<size_t>(std::find(here.begin(), here.end(), owner_.rank) - here.begin());
  }
  const absl::Duration patience = std::min(owner_.setup.settings.timeout, kLongestTrade);
  const auto halt = [this] {
    return owner_.watch.failed() ? owner_.watch.verdict() : absl::OkStatus();
  };
  absl::StatusOr<shm::Window> window = own->Trade(offers, self, MonotonicNow() + patience, halt);
  // Either all ranks have it, or none.
  auto traded = static_cast<std::byte>(window.ok() ? 1 : 0);
  absl::Status agreed = owner_.executor.Run({.collective = collectives::Collective::kAllReduce,
                                             .ranks = owner_.world_size,
                                             .reduction = {rhUint8, rhMin, 1, {}},
                                             .send = &traded,
                                             .receive = &traded,
                                             .count = 1});
  if (!agreed.ok()) return agreed;
  if (!window.ok()) return window.status();
  if (traded == std::byte{0}) {
    return absl::UnavailableError("another rank could not map all memory; see its log");
  }
  return group->Open(*std::move(window));
}

void DirectMemory::CloseWindow(size_t window) {
  if (shm::Group* group = owner_.paths.GroupHere(); group != nullptr) group->Close(window);
}

}  // namespace railhead::comm
