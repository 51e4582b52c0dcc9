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
  const size_t comparable = std::min(kMagic.size(), buffer_.size());
  if (absl::string_view(buffer_).substr(0, comparable) != kMagic.substr(0, comparable)) {
    return absl::InvalidArgumentError("not a frame of a Railhead rank");
  }
  if (buffer_.size() < kHeaderSize) return std::nullopt;
  WireReader reader(buffer_);
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
  if (buffer_.size() - kHeaderSize < size) return std::nullopt;
  Frame frame{static_cast<FrameKind>(kind), buffer_.substr(kHeaderSize, size)};
  buffer_.erase(0, kHeaderSize + size);
  return frame;
}

}  // namespace railhead::bootstrap
