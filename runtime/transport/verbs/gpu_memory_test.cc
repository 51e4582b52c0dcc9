// SPDX-License-Identifier: Apache-2.0
//
// Frames from memory of a GPU that is known: no CPU touches it, or this process dies.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string>
#include <vector>

#include "runtime/device/fake_cuda.h"
#include "runtime/transport/verbs/user_memory.h"
#include "runtime/transport/verbs/verbs_pair_for_test.h"

namespace railhead::transport::verbs {
namespace {

using fabric::GpuDirectWay;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr size_t kBytes = 100000;

class GpuMemoryTest : public EveryNetworkTest {
 protected:
  void SetUp() override {
    EveryNetworkTest::SetUp();
    fake_->SetGpus(cuda_);
    data_ = cuda_->Allocate(kBytes, 2);
    std::byte* const bytes = cuda_->Bytes(data_);
    for (size_t i = 0; i < kBytes; ++i) bytes[i] = static_cast<std::byte>(i * 31 + i / 251);
  }

  KnownGpu Know(size_t begin = 0, size_t size = kBytes) {
    return a_.device->memory()->KnowGpu({data_ + begin, size},
                                        **device::Memory::Find(*cuda_, data_),
                                        Logger(LogLevel::kError, "rank 0"));
  }
  std::string Text(size_t begin, size_t size) const {
    return {reinterpret_cast<const char*>(cuda_->Bytes(data_)) + begin, size};
  }
  absl::StatusOr<bool> Send(size_t begin, size_t size, bool awaited = true, bool repeated = false) {
    FrameHeader header = {1, begin};
    header.awaited = awaited;
    header.repeated = repeated;
    return a_.link->TrySend(header, absl::MakeConstSpan(data_ + begin, size));
  }
  // What of these bytes arrives.
  std::string Carry(size_t begin, size_t size, bool awaited = true, bool repeated = false) {
    b_.received.clear();
    const absl::StatusOr<bool> taken = Send(begin, size, awaited, repeated);
    if (!taken.ok() || !*taken) return "not taken";
    PollUntilQuiet();
    return b_.received.size() == 1 ? b_.received.front().second : "not arrived";
  }
  // What fake0 has registered of GPUs.
  std::vector<FakeRegion> Regions() const {
    std::vector<FakeRegion> regions = fake_->regions("fake0");
    const auto begin = reinterpret_cast<uint64_t>(data_);
    std::erase_if(regions, [&](const FakeRegion& region) {
      return region.address < begin || region.address >= begin + kBytes;
    });
    return regions;
  }

  std::shared_ptr<device::FakeCuda> cuda_ = std::make_shared<device::FakeCuda>();
  std::byte* data_ = nullptr;
};

INSTANTIATE_TEST_SUITE_P(Networks, GpuMemoryTest, ::testing::ValuesIn(kEveryWay), WayName);

TEST_P(GpuMemoryTest, IsReadByTheNicWhereItCanBe) {
  ConnectBoth();
  for (const bool dma_buf : {true, false}) {
    cuda_->SetDmaBuf(dma_buf);
    // Anywhere in its pages.
    const KnownGpu known = Know(77, kBytes - 100);
    EXPECT_EQ(known.way, dma_buf ? GpuDirectWay::kDmabuf : GpuDirectWay::kPeermem);
    EXPECT_EQ(known.trouble, "");
    EXPECT_TRUE(cuda_->synchronized(data_));
    ASSERT_EQ(Regions().size(), 1U) << "at once";
    EXPECT_EQ(Regions()[0].dma_buf, dma_buf);
    EXPECT_EQ(Regions()[0].length, kBytes - 100);
    EXPECT_EQ(Regions()[0].access, IBV_ACCESS_RELAXED_ORDERING) << "nobody else may touch it";
    EXPECT_EQ(Carry(77, 65536), Text(77, 65536));
    EXPECT_EQ(Carry(5001, 4096), Text(5001, 4096));
    EXPECT_EQ(Regions()[0].bytes_sent, 65536U + 4096U);
    EXPECT_EQ(cuda_->copies(), 0);
  }
  EXPECT_TRUE(Regions().empty());
}

TEST_P(GpuMemoryTest, OtherFramesAreCopiedByTheGpu) {
  ConnectBoth();
  const KnownGpu known = Know();
  EXPECT_EQ(Carry(10, 4095), Text(10, 4095));
  EXPECT_EQ(Carry(10, 5000, /*awaited=*/false), Text(10, 5000));
  EXPECT_EQ(Carry(10, 5000, /*awaited=*/true, /*repeated=*/true), Text(10, 5000));
  EXPECT_EQ(cuda_->copies(), 3);
  EXPECT_EQ(Regions()[0].bytes_sent, 0U);
}

TEST_P(GpuMemoryTest, ThatNoNicCanReadIsCopiedByTheGpu) {
  ConnectBoth();
  fake_->RefuseDmaBufs(EOPNOTSUPP);
  cuda_->SetPeermem(false);
  const KnownGpu known = Know();
  EXPECT_EQ(known.way, GpuDirectWay::kNone);
  EXPECT_THAT(known.trouble,
              AllOf(HasSubstr("rail 0, device fake0 port 1 cannot read memory of GPU 2"),
                    HasSubstr("dma-buf: Operation not supported"), HasSubstr("Bad address"),
                    HasSubstr("load nvidia-peermem")));
  EXPECT_EQ(Carry(10, 65536), Text(10, 65536));
  EXPECT_EQ(cuda_->copies(), 1);
}

TEST_P(GpuMemoryTest, ACopyThatFailsIsNotTheRailsFault) {
  ConnectBoth();
  const KnownGpu known = Know();
  cuda_->FailCopies(719);
  const absl::Status failed = Send(10, 100).status();
  EXPECT_EQ(failed.code(), absl::StatusCode::kInternal) << "no other rail would do better";
  EXPECT_THAT(std::string(failed.message()), HasSubstr("GPU 2: cannot copy 100 bytes"));
}

// Nobody has said that it was freed, so there is a region of the old bytes at the same address, and
// of the two the one that begins last comes first.
TEST_P(GpuMemoryTest, WhatIsAllocatedAgainIsNotReadByAnOldRegistration) {
  ConnectBoth();
  const KnownGpu old = Know(100, kBytes - 100);
  const KnownGpu apart = Know(0, 50);
  cuda_->Reallocate(data_);
  std::fill_n(cuda_->Bytes(data_), kBytes, std::byte{7});
  const KnownGpu known = Know(60, kBytes - 60);
  EXPECT_EQ(Regions().size(), 2U) << "the new one, and what it says nothing of";
  EXPECT_EQ(Carry(200, 65536), Text(200, 65536));
  EXPECT_EQ(cuda_->copies(), 0);
  EXPECT_EQ(Carry(200, 100), Text(200, 100));
}

// Frames of one transfer on both sides of the news that its memory is another allocation's, and of
// its end.
TEST_P(GpuMemoryTest, NewsWithinATransfer) {
  ConnectBoth();
  const KnownGpu old = Know();
  EXPECT_EQ(Carry(0, 8192), Text(0, 8192));
  cuda_->Reallocate(data_);
  std::fill_n(cuda_->Bytes(data_), kBytes, std::byte{7});
  {
    const KnownGpu known = Know();
    EXPECT_EQ(Regions().size(), 1U);
    EXPECT_EQ(Carry(8192, 8192), Text(8192, 8192));
    EXPECT_EQ(Carry(16384, 100), Text(16384, 100));
    EXPECT_EQ(cuda_->copies(), 1);
  }
  EXPECT_TRUE(Regions().empty()) << "what the link found last keeps none";
}

TEST_P(GpuMemoryTest, PiecesOfOneAllocationStandBesideEachOther) {
  ConnectBoth();
  const KnownGpu all = Know();
  const KnownGpu piece = Know(100, 5000);
  EXPECT_EQ(Regions().size(), 2U);
}

TEST_P(GpuMemoryTest, ThatTheDriverDoesNotNumberIsNotRead) {
  ConnectBoth();
  cuda_->WithoutIds();
  cuda_->Reallocate(data_);
  std::fill_n(cuda_->Bytes(data_), kBytes, std::byte{7});
  const KnownGpu known = Know();
  EXPECT_EQ(known.way, GpuDirectWay::kNone);
  EXPECT_THAT(known.trouble, AllOf(HasSubstr("rail 0, device fake0 port 1"), HasSubstr("GPU 2"),
                                   HasSubstr("no buffer ID"), HasSubstr("cudaMalloc")));
  EXPECT_TRUE(Regions().empty());
  EXPECT_EQ(Carry(10, 65536), Text(10, 65536));
}

// A NIC could come before the end of a copy that has returned.
TEST_P(GpuMemoryTest, WhoseCopiesDoNotWaitIsNotRead) {
  ConnectBoth();
  cuda_->FailSynchronizing(device::kCudaNotSupported);
  const KnownGpu known = Know();
  EXPECT_EQ(known.way, GpuDirectWay::kNone);
  EXPECT_THAT(known.trouble, AllOf(HasSubstr("rail 0, device fake0 port 1"),
                                   HasSubstr("GPU 2: cannot make copies wait for their end"),
                                   HasSubstr("CUDA error 801"), HasSubstr("cudaMalloc")));
  EXPECT_TRUE(Regions().empty());
  EXPECT_EQ(Carry(10, 65536), Text(10, 65536));
  EXPECT_EQ(cuda_->copies(), 1);
}

// It takes no memory that may be pinned.
TEST_P(GpuMemoryTest, ConnectionsDoNotComeBeforeIt) {
  ConnectBoth();
  const KnownGpu known = Know();
  a_.device->memory()->MakeRoom();
  EXPECT_EQ(Carry(0, 4096), Text(0, 4096));
  EXPECT_EQ(cuda_->copies(), 0);
}

// A dma-buf keeps what it was made of; what peermem has lent is taken back.
TEST_P(GpuMemoryTest, FreedMemoryIsNotReadByPeermem) {
  ConnectBoth();
  cuda_->SetDmaBuf(false);
  const KnownGpu known = Know();
  fake_->SetPortState("fake1", IBV_PORT_DOWN);
  ASSERT_TRUE(Send(0, 65536).ok());
  cuda_->Free(data_);
  fake_->SetPortState("fake1", IBV_PORT_ACTIVE);
  absl::Status error;
  for (int i = 0; i < 50 && error.ok(); ++i) {
    fake_->AdvanceTime(absl::Milliseconds(100));
    error = a_.Poll().status();
  }
  EXPECT_EQ(error.code(), absl::StatusCode::kInternal) << error;
}

}  // namespace
}  // namespace railhead::transport::verbs
