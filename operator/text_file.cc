// SPDX-License-Identifier: Apache-2.0
#include "operator/text_file.h"

#include <fstream>
#include <iostream>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace railhead::op {
namespace {

constexpr size_t kMaxBytes = 1U << 20U;

}  // namespace

absl::StatusOr<std::string> ReadTextFile(const std::string& path) {
  std::ifstream file;
  if (path != "-") {
    file.open(path, std::ios::binary);
    if (!file) return absl::NotFoundError(absl::StrCat("cannot open ", path));
  }
  std::istream& input = path == "-" ? std::cin : file;
  std::string text(kMaxBytes + 1, '\0');
  input.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (input.bad() || (input.fail() && !input.eof())) {
    return absl::InvalidArgumentError(absl::StrCat("cannot read ", path));
  }
  text.resize(static_cast<size_t>(input.gcount()));
  if (text.size() > kMaxBytes) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is larger than ", kMaxBytes, " bytes"));
  }
  return text;
}

}  // namespace railhead::op
