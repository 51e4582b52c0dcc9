// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace railhead {
namespace {

class FileTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(mkdtemp(folder_.data()), nullptr); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Made(const std::string& name, const std::string& content) {
    std::string path = folder_ + "/" + name;
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }

  std::string folder_ = ::testing::TempDir() + "/file-XXXXXX";
};

TEST_F(FileTest, BothReadAllBytesUpToTheLimit) {
  for (const size_t size : {0UL, 1UL, 65535UL, 65536UL, 65537UL, 200000UL}) {
    std::string content(size, '\0');
    for (size_t i = 0; i < size; ++i) content[i] = static_cast<char>(i * 31);
    const std::string path = Made("f", content);
    for (const size_t limit : {size, size + 1}) {
      const absl::StatusOr<std::string> whole = ReadWholeFile(path, limit);
      ASSERT_TRUE(whole.ok()) << whole.status();
      EXPECT_EQ(*whole, content);
      const absl::StatusOr<std::string> input = ReadInput(path, limit);
      ASSERT_TRUE(input.ok()) << input.status();
      EXPECT_EQ(*input, content);
    }
    if (size == 0) continue;
    EXPECT_EQ(ReadWholeFile(path, size - 1).status(),
              absl::InvalidArgumentError(path + " has more than the " + std::to_string(size - 1) +
                                         " bytes that are allowed"));
    EXPECT_TRUE(absl::IsInvalidArgument(ReadInput(path, size - 1).status()));
  }
}

TEST_F(FileTest, ErrorsNameThePathAndCarryTheCode) {
  const std::string missing = folder_ + "/missing";
  EXPECT_TRUE(absl::IsNotFound(ReadWholeFile(missing, 9).status()));
  EXPECT_THAT(std::string(ReadInput(missing, 9).status().message()),
              ::testing::HasSubstr("cannot open " + missing));
  EXPECT_EQ(ReadWholeFile(folder_, 9).status().message(), folder_ + " is not a regular file");
  EXPECT_FALSE(ReadInput(folder_, 9).ok());
}

TEST_F(FileTest, APipeIsAnInputAndNotAFile) {
  const std::string pipe = folder_ + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(ReadWholeFile(pipe, 9).status().message(), pipe + " is not a regular file");
  std::thread writer([&] { std::ofstream(pipe) << "text"; });
  const absl::StatusOr<std::string> input = ReadInput(pipe, 9);
  writer.join();
  ASSERT_TRUE(input.ok()) << input.status();
  EXPECT_EQ(*input, "text");
}

TEST_F(FileTest, LinksAreFollowedUnlessRefused) {
  const std::string link = folder_ + "/link";
  ASSERT_EQ(symlink(Made("f", "text").c_str(), link.c_str()), 0);
  EXPECT_EQ(ReadWholeFile(link, 9).value_or(""), "text");
  EXPECT_FALSE(ReadWholeFile(link, 9, Links::kRefuse).ok());
}

}  // namespace
}  // namespace railhead
