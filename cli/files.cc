// SPDX-License-Identifier: Apache-2.0
#include "cli/files.h"

#include <array>
#include <cerrno>
#include <cstddef>
#include <fstream>
#include <iostream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace railhead::cli {

absl::StatusOr<std::string> ReadText(const std::string& path, size_t most) {
  std::ifstream file;
  if (path != "-") {
    file.open(path, std::ios::binary);
    if (!file) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
  }
  std::istream& input = path == "-" ? std::cin : file;
  std::string text;
  std::array<char, 65536> piece{};
  while (text.size() <= most && input.read(piece.data(), piece.size()).gcount() > 0) {
    text.append(piece.data(), static_cast<size_t>(input.gcount()));
  }
  if (input.bad()) {
    return absl::InvalidArgumentError(absl::StrCat("cannot read ", path, "; is it a file?"));
  }
  if (text.size() > most) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " has more than the ", most, " bytes that are allowed"));
  }
  return text;
}

absl::Status WriteText(const std::string& path, absl::string_view text) {
  std::ofstream file(path, std::ios::binary);
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  file.close();
  if (!file) return absl::ErrnoToStatus(errno, absl::StrCat("cannot write ", path));
  return absl::OkStatus();
}

}  // namespace railhead::cli
