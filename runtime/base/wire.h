// SPDX-License-Identifier: Apache-2.0
//
// Serialization of small structures between ranks: little-endian integers and length-prefixed
// strings. The reader trusts nothing: after the first field that does not fit, all reads fail.
#ifndef RAILHEAD_RUNTIME_BASE_WIRE_H_
#define RAILHEAD_RUNTIME_BASE_WIRE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"

namespace railhead {

class WireWriter {
 public:
  void U8(uint8_t value) { Integer(value, 1); }
  void U16(uint16_t value) { Integer(value, 2); }
  void U32(uint32_t value) { Integer(value, 4); }
  void U64(uint64_t value) { Integer(value, 8); }
  void Raw(absl::string_view bytes) { out_.append(bytes.data(), bytes.size()); }
  void String(absl::string_view bytes) {
    U32(static_cast<uint32_t>(bytes.size()));
    Raw(bytes);
  }
  std::string Take() { return std::move(out_); }

 private:
  void Integer(uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) out_.push_back(static_cast<char>((value >> (8 * i)) & 0xff));
  }

  std::string out_;
};

// Reads from `bytes`, which must outlive the reader. Fields that do not fit read as zero or empty
// and clear ok().
class WireReader {
 public:
  explicit WireReader(absl::string_view bytes) : rest_(bytes) {}

  uint8_t U8() { return static_cast<uint8_t>(Integer(1)); }
  uint16_t U16() { return static_cast<uint16_t>(Integer(2)); }
  uint32_t U32() { return static_cast<uint32_t>(Integer(4)); }
  uint64_t U64() { return Integer(8); }
  absl::string_view Raw(size_t size);
  // Reads a string of at most `limit` bytes.
  std::string String(size_t limit);

  // Returns true if no field was missing.
  bool ok() const { return ok_; }
  // Returns true if, in addition, no bytes are left.
  bool Complete() const { return ok_ && rest_.empty(); }

 private:
  uint64_t Integer(int bytes);

  absl::string_view rest_;
  bool ok_ = true;
};

}  // namespace railhead

#endif  // RAILHEAD_RUNTIME_BASE_WIRE_H_
