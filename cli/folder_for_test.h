// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_CLI_FOLDER_FOR_TEST_H_
#define RAILHEAD_CLI_FOLDER_FOR_TEST_H_

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"

namespace railhead::cli {

// Temporary directory of one test; removed with its contents at destruction.
class FolderForTest {
 public:
  FolderForTest() : path_(::testing::TempDir() + "/railhead-cli-XXXXXX") {
    EXPECT_NE(mkdtemp(path_.data()), nullptr);
  }
  ~FolderForTest() { std::filesystem::remove_all(path_); }
  FolderForTest(const FolderForTest&) = delete;
  FolderForTest& operator=(const FolderForTest&) = delete;

  const std::string& path() const { return path_; }
  std::string Path(const std::string& name) const { return absl::StrCat(path_, "/", name); }
  // Writes a file and returns its path.
  std::string Write(const std::string& name, const std::string& text) const {
    std::ofstream(Path(name)) << text;
    return Path(name);
  }

 private:
  std::string path_;
};

}  // namespace railhead::cli

#endif  // RAILHEAD_CLI_FOLDER_FOR_TEST_H_
