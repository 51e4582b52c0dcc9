// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/cuda_api.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>

#include "runtime/base/clock.h"

namespace railhead::device {
namespace {

// In one test, since a process that has loaded a library has it for ever.
TEST(LoadedCuda, FindsWhatTheProgramHasLoadedAndLoadsNothing) {
  LoadedCuda cuda(0);
  LoadedCuda trusting(UINT64_MAX);
  EXPECT_EQ(trusting.Loaded(), nullptr);
  EXPECT_EQ(cuda.Loaded(), nullptr);
  EXPECT_EQ(cuda.Loaded(), nullptr);
  ASSERT_EQ(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), nullptr) << "it was loaded";

  // As a framework does, late, by whatever path, and for itself.
  void* const library = dlopen(RAILHEAD_STUB_CUDA, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  const CudaApi* const api = cuda.Loaded();
  ASSERT_NE(api, nullptr);
  EXPECT_EQ(cuda.Loaded(), api);
  if (SystemTime::HasTicks()) {
    EXPECT_EQ(trusting.Loaded(), nullptr) << "it has just searched";
  }
  dlclose(library);
  EXPECT_EQ(std::string(api->ErrorText(2)), "from the stub") << "it stays";
  EXPECT_EQ(std::string(api->ErrorText(-1)), "unknown error");
  CudaContext context = nullptr;
  int number = 0;
  const std::array<int, 14> results = {api->PointerGetAttributes({}, {}, 0),
                                       api->PointerSetAttribute(nullptr, 0, 0),
                                       api->DeviceGet(&number, 0),
                                       api->DeviceGetAttribute(&number, 0, 0),
                                       api->DevicePrimaryCtxRetain(&context, 0),
                                       api->DevicePrimaryCtxRelease(0),
                                       api->CtxPushCurrent(context),
                                       api->CtxPopCurrent(&context),
                                       api->MemcpyDtoH(nullptr, 0, 0),
                                       api->MemcpyHtoD(0, nullptr, 0),
                                       api->MemcpyDtoD(0, 0, 0),
                                       api->StreamSynchronize(),
                                       api->MemHostAlloc(nullptr, 0, 0),
                                       api->MemFreeHost(nullptr)};
  for (size_t i = 0; i < results.size(); ++i) EXPECT_EQ(results[i], 101 + static_cast<int>(i));
  EXPECT_EQ(api->MemGetHandleForAddressRange(nullptr, 0, 0, 0, 0), kCudaNotSupported)
      << "of a driver older than dma-buf";
  EXPECT_EQ(api->ThreadExchangeStreamCaptureMode(&number), kCudaNotSupported)
      << "of a driver older than graphs";
}

}  // namespace
}  // namespace railhead::device
