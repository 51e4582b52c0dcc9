// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/verbs/verbs_api.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/transport/verbs/verbs.h"

namespace railhead::transport::verbs {
namespace {

// On machines with libibverbs every function is found; on others the reason is given. Either way
// the process runs, which is the point of loading it late.
TEST(LoadVerbsApi, FindsEveryFunctionOrSaysWhatToInstall) {
  const absl::Status status = VerbsLibraryStatus();
  void* const library = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (library != nullptr) {
    EXPECT_TRUE(status.ok()) << status;
    dlclose(library);
  } else {
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr("ibverbs-providers"));
  }
}

TEST(LoadVerbsApi, ADeviceThatCannotExistIsRefusedWithAReason) {
  fabric::PodRail rail;
  rail.rail = 3;
  rail.device = "no-such-device";
  const absl::Status status = OpenVerbsDevice(rail, {}).status();
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("rail 3, device no-such-device"));
}

}  // namespace
}  // namespace railhead::transport::verbs
