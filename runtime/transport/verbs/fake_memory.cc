// SPDX-License-Identifier: Apache-2.0
//
// Protection domains and registered memory of fake NICs, of the host and of GPUs.
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "runtime/device/fake_cuda.h"
#include "runtime/net/fd.h"
#include "runtime/transport/verbs/fake_fabric.h"

namespace railhead::transport::verbs {

bool FakeVerbs::Fabric::Region::Read(uint64_t address, size_t size, std::byte* to) const {
  const uint64_t at = begin + (address - start);
  if (dma_buf.valid()) {
    return pread(dma_buf.get(), to, size, static_cast<off_t>(at)) == static_cast<ssize_t>(size);
  }
  if (!of_gpu) {
    std::memcpy(to, Pointer(address), size);
    return true;
  }
  const std::shared_ptr<const device::FakePages> now = pages.lock();
  if (now != nullptr) std::memcpy(to, now->bytes().data() + at, size);
  return now != nullptr;
}

bool FakeVerbs::Fabric::Region::Write(uint64_t address, const std::byte* from, size_t size) const {
  const uint64_t at = begin + (address - start);
  if (dma_buf.valid()) {
    return pwrite(dma_buf.get(), from, size, static_cast<off_t>(at)) == static_cast<ssize_t>(size);
  }
  if (!of_gpu) {
    std::memcpy(Pointer(address), from, size);
    return true;
  }
  const std::shared_ptr<const device::FakePages> now = pages.lock();
  if (now != nullptr) std::memcpy(now->bytes().data() + at, from, size);
  return now != nullptr;
}

ibv_mr* FakeVerbs::Fabric::Add(std::unique_ptr<Region> region, ibv_pd* domain, int access) {
  region->verbs.context = domain->context;
  region->verbs.pd = domain;
  region->access = access;
  const uint32_t key = next_key++;
  region->verbs.lkey = region->verbs.rkey = key;
  return &regions.emplace(key, std::move(region)).first->second->verbs;
}

ibv_pd* FakeVerbs::AllocPd(ibv_context* context) const {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  auto domain = std::make_unique<ibv_pd>();
  domain->context = context;
  fabric_->domains.push_back(std::move(domain));
  return fabric_->domains.back().get();
}

int FakeVerbs::DeallocPd(ibv_pd* domain) const {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  bool used = false;
  for (const auto& [key, region] : fabric_->regions) used = used || region->verbs.pd == domain;
  for (const auto& [number, pair] : fabric_->pairs) used = used || pair->verbs.pd == domain;
  if (used) return fabric_->Refuse("a protection domain destroyed while in use", EBUSY);
  Fabric::Erase(fabric_->domains, domain);
  return 0;
}

ibv_mr* FakeVerbs::RegMr(ibv_pd* domain, void* address, size_t length, int access) const {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  Fabric::Nic& nic = *Fabric::Of(domain->context).nic;
  if (nic.registered + length > nic.config.memlock) {
    errno = ENOMEM;
    return nullptr;
  }
  auto region = std::make_unique<Fabric::Region>();
  if (gpus_ != nullptr && gpus_->Owns(address)) {
    // Neither counts such memory, nor needs it to be pinned.
    region->pages = gpus_->Pin(address, length);
    region->begin = gpus_->OffsetOf(address);
    region->of_gpu = true;
    if (region->pages.expired()) {
      errno = EFAULT;
      return nullptr;
    }
  } else {
    nic.registered += length;
  }
  region->verbs.addr = address;
  region->verbs.length = length;
  region->start = reinterpret_cast<uintptr_t>(address);
  return fabric_->Add(std::move(region), domain, access);
}

ibv_mr* FakeVerbs::RegDmabufMr(ibv_pd* domain, uint64_t offset, size_t length, uint64_t address,
                               int fd, int access) const {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  struct stat file = {};
  const off_t start = lseek(fd, 0, SEEK_CUR);
  if (fabric_->dma_buf_error != 0 || fstat(fd, &file) != 0 || start < 0 ||
      static_cast<uint64_t>(start) + offset + length > static_cast<uint64_t>(file.st_size)) {
    errno = fabric_->dma_buf_error != 0 ? fabric_->dma_buf_error : EINVAL;
    return nullptr;
  }
  auto region = std::make_unique<Fabric::Region>();
  region->verbs.length = length;
  region->start = address;
  region->begin = static_cast<uint64_t>(start) + offset;
  region->dma_buf = net::Fd(fcntl(fd, F_DUPFD_CLOEXEC, 0));
  region->of_gpu = true;
  return fabric_->Add(std::move(region), domain, access);
}

int FakeVerbs::DeregMr(ibv_mr* region) const {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  for (const auto& [number, pair] : fabric_->pairs) {
    if (pair->attributes.qp_state != IBV_QPS_RTS) continue;
    for (const std::vector<ibv_sge>& entry : pair->entries) {
      if (std::any_of(entry.begin(), entry.end(),
                      [&](const ibv_sge& piece) { return piece.lkey == region->lkey; })) {
        return fabric_->Refuse("memory deregistered while a send may read it", EBUSY);
      }
    }
  }
  const auto found = fabric_->regions.find(region->lkey);
  if (!found->second->of_gpu) Fabric::Of(region->context).nic->registered -= region->length;
  fabric_->regions.erase(found);
  return 0;
}

}  // namespace railhead::transport::verbs
