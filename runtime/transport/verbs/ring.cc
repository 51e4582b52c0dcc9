// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/verbs/ring.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"

namespace railhead::transport::verbs {

size_t Ring::Bytes(uint32_t slots, uint32_t slot_payload) {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return (slots * SlotStride(slot_payload) + page - 1) / page * page;
}

absl::StatusOr<Ring> Ring::Create(const DevicePort& port, Use use, uint32_t slots,
                                  uint32_t slot_payload) {
  const size_t size = Bytes(slots, slot_payload);
  void* const memory =
      mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    return VerbsError(port.name(), absl::StrCat("map ", size / 1024, " KiB of memory"), errno);
  }
  Owned<std::byte> base(static_cast<std::byte*>(memory),
                        [size](std::byte* address) { munmap(address, size); });

  int access = IBV_ACCESS_RELAXED_ORDERING;
  if (use == Use::kReceive) access |= IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
  // The peer reads what it has written itself, as a sign of life (iwarp_pair.h).
  if (use == Use::kReceive && port.iwarp()) access |= IBV_ACCESS_REMOTE_READ;
  absl::StatusOr<Owned<ibv_mr>> region = port.Register(memory, size, access);
  if (!region.ok()) return region.status();
  return Ring(std::move(base), *std::move(region), slots, slot_payload);
}

Ring::Ring(Owned<std::byte> base, Owned<ibv_mr> region, uint32_t slots, uint32_t slot_payload)
    : base_(std::move(base)),
      region_(std::move(region)),
      slots_(slots),
      slot_payload_(slot_payload) {}

}  // namespace railhead::transport::verbs
