// SPDX-License-Identifier: Apache-2.0
#include "runtime/bootstrap/frame.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/wire.h"

namespace railhead::bootstrap {
namespace {

constexpr absl::string_view kMagic = "RHB1";
constexpr size_t kHeaderSize = 12;

}  // namespace

std::string EncodeFrame(FrameKind kind, absl::string_view payload) {
  WireWriter writer;
  writer.Raw(kMagic);
  writer.U32(static_cast<uint32_t>(kind));
  writer.String(payload);
  return writer.Take();
}

absl::StatusOr<std::optional<Frame>> FrameReader::Next() {
  const absl::string_view left = absl::string_view(buffer_).substr(begin_);
  const size_t comparable = std::min(kMagic.size(), left.size());
  if (left.substr(0, comparable) != kMagic.substr(0, comparable)) {
    return absl::InvalidArgumentError("not a frame of a Railhead rank");
  }
  if (left.size() < kHeaderSize) return std::nullopt;
  WireReader reader(left);
  reader.Raw(kMagic.size());
  const uint32_t kind = reader.U32();
  const uint32_t size = reader.U32();
  if (kind < static_cast<uint32_t>(FrameKind::kHello) ||
      kind > static_cast<uint32_t>(kLastFrameKind)) {
    return absl::InvalidArgumentError(absl::StrCat("unknown kind of frame ", kind));
  }
  if (size > limit_) {
    return absl::InvalidArgumentError(
        absl::StrCat("a frame of ", size, " bytes, more than the limit of ", limit_));
  }
  if (left.size() - kHeaderSize < size) return std::nullopt;
  begin_ += kHeaderSize + size;
  return Frame{static_cast<FrameKind>(kind), std::string(left.substr(kHeaderSize, size))};
}

}  // namespace railhead::bootstrap
