// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "runtime/device/fake_cuda.h"

namespace railhead::device {
namespace {

using ::testing::HasSubstr;

constexpr size_t kBytes = 10000;

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
  ASSERT_TRUE(Memory::Find(cuda, device).has_value());
  EXPECT_EQ(Memory::Find(cuda, device)->Name(), "GPU 3");
  EXPECT_TRUE(Memory::Find(cuda, device)->IsSame(*Memory::Find(cuda, device + kBytes - 1)));
  EXPECT_FALSE(Memory::Find(cuda, device)->IsSame(*Memory::Find(cuda, other)));
  cuda.WithoutIds();
  const Memory unnumbered = *Memory::Find(cuda, cuda.Allocate(kBytes));
  EXPECT_FALSE(unnumbered.HasIdentity());
  EXPECT_FALSE(unnumbered.IsSame(unnumbered)) << "who knows";
  EXPECT_FALSE(Memory::Find(cuda, host.data()).has_value());
  EXPECT_FALSE(Memory::Find(cuda, nullptr).has_value());
  EXPECT_FALSE(Memory::Find(cuda, cuda.AllocateManaged(kBytes)).has_value())
      << "a CPU may touch it";
  cuda.SetInitialized(false);
  EXPECT_FALSE(Memory::Find(cuda, device).has_value()) << "nobody has asked for any";
}

TEST(DeviceMemory, IsCopiedWithoutBeingTouched) {
  for (const bool own_context : {true, false}) {
    FakeCuda cuda;
    std::byte* const device = cuda.Allocate(kBytes, 1, own_context);
    std::byte* const other = cuda.Allocate(kBytes, 1, own_context);
    const Memory memory = *Memory::Find(cuda, device);
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

TEST(DeviceMemory, ErrorsNameTheGpuAndTheCause) {
  FakeCuda cuda;
  std::byte* const device = cuda.Allocate(kBytes, 2);
  const Memory memory = *Memory::Find(cuda, device);
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
  FakeCuda cuda;
  std::byte* const device = cuda.Allocate(5 * 4096);
  const std::vector<std::byte> values = Pattern(5 * 4096);
  std::copy(values.begin(), values.end(), cuda.Bytes(device));
  const Memory memory = *Memory::Find(cuda, device);
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
  EXPECT_FALSE(memory.Export({device, 5 * 4096 + 1}).ok()) << "more than there is";
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
  const Memory memory = *Memory::Find(cuda, cuda.Allocate(kBytes));
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
    cuda.FailPinning(kCudaSuccess);
    EXPECT_TRUE(pinned.Get(200000, memory).ok());
  }
  EXPECT_EQ(cuda.pinned(), 0U);
}

}  // namespace
}  // namespace railhead::device
