// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/wire.h"

#include <string>

namespace railhead {

absl::string_view WireReader::Raw(size_t size) {
  if (!ok_ || size > rest_.size()) {
    ok_ = false;
    return {};
  }
  const absl::string_view taken = rest_.substr(0, size);
  rest_.remove_prefix(size);
  return taken;
}

std::string WireReader::String(size_t limit) {
  const size_t size = U32();
  if (size > limit) ok_ = false;
  return std::string(Raw(size));
}

uint64_t WireReader::Integer(int bytes) {
  const absl::string_view raw = Raw(static_cast<size_t>(bytes));
  uint64_t value = 0;
  for (size_t i = 0; i < raw.size(); ++i) {
    value |= static_cast<uint64_t>(static_cast<unsigned char>(raw[i])) << (8 * i);
  }
  return value;
}

}  // namespace railhead
