// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/line_copy.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace railhead {
namespace {

TEST(LineCopyTest, CopiesEachSizeToEachPlaceInALine) {
  std::vector<std::byte> from(300);
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i % 251);
  for (size_t at = 0; at < 130; ++at) {
    for (size_t size = 0; size <= from.size(); ++size) {
      alignas(128) std::array<std::byte, 512> to{};
      LineCopy(to.data() + at, from.data(), size);
      for (size_t i = 0; i < to.size(); ++i) {
        const std::byte wanted = i >= at && i < at + size ? from[i - at] : std::byte{0};
        ASSERT_EQ(to[i], wanted) << "byte " << i << " of " << size << " at " << at;
      }
    }
  }
}

}  // namespace
}  // namespace railhead
