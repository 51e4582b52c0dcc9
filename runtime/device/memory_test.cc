// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/device/fake_cuda.h"

namespace railhead::device {
namespace {

using ::testing::HasSubstr;

constexpr size_t kBytes = 10000;

// What is known of an address, where the driver answers.
std::optional<Memory> Find(const FakeCuda& cuda, const void* address) {
  absl::StatusOr<std::optional<Memory>> found = Memory::Find(cuda, address);
  EXPECT_TRUE(found.ok()) << found.status();
  return found.ok() ? *found : std::nullopt;
}

std::vector<std::byte> Pattern(size_t size) {
  std::vector<std::byte> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 31 + i / 251);
  return bytes;
}

TEST(DeviceMemory, IsKnownByItsAddress) {
  FakeCuda cuda;
  std::byte* const device = cuda.Allocate(kBytes, 3);
  std::byte* const other = cuda.Allocate(kBytes, 3);
  const std::vector<std::byte> host(kBytes);
  ASSERT_TRUE(Find(cuda, device).has_value());
  EXPECT_EQ(Find(cuda, device)->Name(), "GPU 3");
  EXPECT_TRUE(Find(cuda, device)->IsSame(*Find(cuda, device + kBytes - 1)));
  EXPECT_FALSE(Find(cuda, device)->IsSame(*Find(cuda, other)));
  EXPECT_FALSE(Find(cuda, host.data()).has_value());
  EXPECT_FALSE(Find(cuda, nullptr).has_value());
  EXPECT_FALSE(Find(cuda, cuda.AllocateManaged(kBytes)).has_value()) << "a CPU may touch it";
  for (const int no_driver : {1, 3, 4, 34}) {
    cuda.FailQuestions(no_driver);
    EXPECT_FALSE(Find(cuda, device).has_value()) << no_driver;
  }
  cuda.FailQuestions(kCudaSuccess);
  cuda.SetInitialized(false);
  EXPECT_FALSE(Find(cuda, device).has_value()) << "nobody has asked for any";
}

TEST(DeviceMemory, ThatTheDriverDoesNotNumberIsNeverTheSame) {
  FakeCuda cuda;
  EXPECT_TRUE(Find(cuda, cuda.Allocate(kBytes))->HasIdentity());
  cuda.WithoutIds();
  const Memory unnumbered = *Find(cuda, cuda.Allocate(kBytes));
  EXPECT_FALSE(unnumbered.HasIdentity());
  EXPECT_FALSE(unnumbered.IsSame(unnumbered));
}

TEST(DeviceMemory, ManagedMemoryIsKnownAsSuch) {
  FakeCuda cuda;
  const std::vector<std::byte> host(kBytes);
  EXPECT_TRUE(*Memory::IsManaged(cuda, cuda.AllocateManaged(kBytes)));
  EXPECT_FALSE(*Memory::IsManaged(cuda, cuda.Allocate(kBytes)));
  EXPECT_FALSE(*Memory::IsManaged(cuda, host.data()));
}

// A device's memory must not be taken for the host's because its driver has failed.
TEST(DeviceMemory, NobodyKnowsAfterTheDriverHasFailed) {
  FakeCuda cuda;
  std::byte* const device = cuda.Allocate(kBytes);
  for (const int failed : {700, 719}) {
    cuda.FailQuestions(failed);
    const absl::Status found = Memory::Find(cuda, device).status();
    EXPECT_EQ(found.code(), absl::StatusCode::kInternal);
    EXPECT_THAT(std::string(found.message()),
                HasSubstr(absl::StrCat("made up for the test (CUDA error ", failed, ")")));
    EXPECT_FALSE(Memory::IsManaged(cuda, device).ok());
  }
}

TEST(DeviceMemory, IsCopiedWithoutBeingTouched) {
  for (const bool own_context : {true, false}) {
    FakeCuda cuda;
    std::byte* const device = cuda.Allocate(kBytes, 1, own_context);
    std::byte* const other = cuda.Allocate(kBytes, 1, own_context);
    const Memory memory = *Find(cuda, device);
    const std::vector<std::byte> in = Pattern(kBytes);
    std::vector<std::byte> out(kBytes);
    ASSERT_TRUE(memory.CopyIn(in.data(), device, kBytes).ok());
    ASSERT_TRUE(memory.CopyWithin(device + 7, other + 9, 5000).ok());
    ASSERT_TRUE(memory.CopyOut(other + 9, out.data(), 5000).ok());
    EXPECT_TRUE(std::equal(out.begin(), out.begin() + 5000, in.begin() + 7));
    EXPECT_EQ(out[5000], std::byte{0});
    EXPECT_TRUE(memory.Synchronize(device).ok());
    EXPECT_TRUE(cuda.synchronized(device));
    EXPECT_FALSE(cuda.synchronized(other));
    EXPECT_EQ(cuda.retained(), 0U) << "what is borrowed is given back";
    EXPECT_DEATH(static_cast<volatile std::byte*>(device)[0] = std::byte{1}, "");
  }
}

// As a framework does that makes a graph of its kernels.
TEST(DeviceMemory, IsCopiedWhileAnotherThreadCapturesAStream) {
  FakeCuda cuda;
  std::byte* const device = cuda.Allocate(kBytes);
  const Memory memory = *Find(cuda, device);
  cuda.Capture(true);
  for (const int mode_of_thread : {kCaptureModeGlobal, kCaptureModeRelaxed}) {
    int mode = mode_of_thread;
    cuda.ThreadExchangeStreamCaptureMode(&mode);
    {
      PinnedMemory pinned;
      const absl::StatusOr<std::byte*> host = pinned.Get(kBytes, memory);
      ASSERT_TRUE(host.ok()) << host.status();
      EXPECT_TRUE(memory.CopyIn(*host, device, kBytes).ok());
      EXPECT_TRUE(memory.CopyOut(device, *host, kBytes).ok());
      EXPECT_TRUE(memory.CopyWithin(device, device, kBytes).ok());
    }
    EXPECT_EQ(cuda.pinned(), 0U);
    cuda.ThreadExchangeStreamCaptureMode(&mode);
    EXPECT_EQ(mode, mode_of_thread) << "as it was";
  }
}

TEST(DeviceMemory, ErrorsNameTheGpuAndTheCause) {
  FakeCuda cuda;
  std::byte* const device = cuda.Allocate(kBytes, 2);
  const Memory memory = *Find(cuda, device);
  std::vector<std::byte> host(kBytes);
  cuda.FailCopies(719);
  const absl::Status failed = memory.CopyOut(device, host.data(), 100);
  EXPECT_EQ(failed.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(failed.message(),
            "GPU 2: cannot copy 100 bytes to the host: made up for the test (CUDA error 719)");
  EXPECT_FALSE(memory.CopyIn(host.data(), device, 1).ok());
  EXPECT_FALSE(memory.CopyWithin(device, device + 1, 1).ok());
  cuda.FailCopies(kCudaSuccess);
  cuda.Free(device);
  EXPECT_FALSE(memory.CopyOut(device, host.data(), 100).ok());
}

TEST(DeviceMemory, IsExportedByWholePages) {
  constexpr size_t kFivePages = size_t{5} * 4096;
  FakeCuda cuda;
  std::byte* const device = cuda.Allocate(kFivePages);
  const std::vector<std::byte> values = Pattern(kFivePages);
  std::copy(values.begin(), values.end(), cuda.Bytes(device));
  const Memory memory = *Find(cuda, device);
  for (const auto& [begin, size] :
       std::vector<std::pair<size_t, size_t>>{{0, 1}, {0, 20480}, {5000, 4096}, {20479, 1}}) {
    absl::StatusOr<DmaBuf> exported = memory.Export({device + begin, size});
    ASSERT_TRUE(exported.ok()) << exported.status();
    std::vector<std::byte> got(size);
    const off_t start = ::lseek(exported->fd.get(), 0, SEEK_CUR);
    EXPECT_EQ(start % 4096, 0);
    ASSERT_EQ(
        ::pread(exported->fd.get(), got.data(), size, start + static_cast<off_t>(exported->offset)),
        static_cast<ssize_t>(size));
    EXPECT_TRUE(std::equal(got.begin(), got.end(), values.begin() + static_cast<ptrdiff_t>(begin)));
  }
  EXPECT_FALSE(memory.Export({device, kFivePages + 1}).ok()) << "more than there is";
  cuda.FailExports(kCudaNotSupported);
  EXPECT_EQ(memory.Export({device, 1}).status().code(), absl::StatusCode::kUnimplemented);
  cuda.FailExports(kCudaSuccess);
  cuda.SetDmaBuf(false);
  const absl::Status missing = memory.Export({device, 1}).status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(missing.message()), HasSubstr("GPU 0: its driver exports no dma-buf"));
}

TEST(PinnedMemory, GrowsAndIsFreed) {
  FakeCuda cuda;
  const Memory memory = *Find(cuda, cuda.Allocate(kBytes));
  {
    PinnedMemory pinned;
    EXPECT_EQ(cuda.pinned(), 0U);
    std::byte* const first = *pinned.Get(1000, memory);
    EXPECT_EQ(*pinned.Get(10, memory), first);
    std::fill_n(*pinned.Get(100000, memory), 100000, std::byte{1});
    EXPECT_EQ(cuda.pinned(), 1U) << "one piece at a time";
    cuda.FailPinning(kCudaOutOfMemory);
    const absl::Status failed = pinned.Get(200000, memory).status();
    EXPECT_EQ(failed.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(std::string(failed.message()), HasSubstr("GPU 0: cannot pin 200000 bytes"));
    EXPECT_EQ(cuda.retained(), 0U) << "what failed keeps no context";
    cuda.FailPinning(kCudaSuccess);
    EXPECT_TRUE(pinned.Get(200000, memory).ok());
  }
  EXPECT_EQ(cuda.pinned(), 0U);
}

// Who lets go of a primary context last takes with it what was pinned there.
TEST(PinnedMemory, IsThereAsLongAsItIsKept) {
  for (const bool own_context : {true, false}) {
    FakeCuda cuda;
    std::byte* const device = cuda.Allocate(kBytes, 1, own_context);
    const Memory memory = *Find(cuda, device);
    {
      PinnedMemory pinned;
      std::byte* const host = *pinned.Get(kBytes, memory);
      EXPECT_EQ(cuda.pinned(), 1U);
      std::fill_n(host, kBytes, std::byte{1});
      ASSERT_TRUE(memory.CopyIn(host, device, kBytes).ok());
      EXPECT_EQ(cuda.pinned(), 1U) << "others take the context and let go of it";
      EXPECT_EQ(cuda.retained(), 1U);
      ASSERT_TRUE(pinned.Get(2 * kBytes, memory).ok());
      EXPECT_EQ(cuda.retained(), 1U);
    }
    EXPECT_EQ(cuda.pinned(), 0U);
    EXPECT_EQ(cuda.retained(), 0U);
  }
}

}  // namespace
}  // namespace railhead::device
