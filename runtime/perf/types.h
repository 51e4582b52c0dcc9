// SPDX-License-Identifier: Apache-2.0
//
// Element types and operators by name, and integers as elements of any type.
#ifndef RAILHEAD_RUNTIME_PERF_TYPES_H_
#define RAILHEAD_RUNTIME_PERF_TYPES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "railhead/railhead.h"

namespace railhead::perf {

struct Type {
  rhDataType_t value;
  const char* name;  // as in nccl-tests
  size_t bytes;
  bool is_signed;
  // 0 for integers.
  int exponent_bits;
  int mantissa_bits;

  bool is_integer() const { return exponent_bits == 0; }
  // Largest integer up to which all are representable; no sum here exceeds it.
  int64_t exact() const;
};

struct Operator {
  rhRedOp_t value;
  const char* name;
  bool on_bits;  // integers only
};

absl::Span<const Type> Types();
absl::Span<const Operator> Operators();

// One type, and one operator if values are reduced (else null).
struct Kind {
  const Type* type = nullptr;
  const Operator* op = nullptr;
};

// Selects every type or operator.
inline constexpr const char* kAll = "all";

// Returns the kinds of these names, without bit operators on floats. InvalidArgument if a name is
// unknown or nothing is left.
absl::StatusOr<std::vector<Kind>> Kinds(bool reduces, absl::string_view type, absl::string_view op);

// Returns the bits of `number` in the low bytes: exact if the float can represent it (up to
// exact(), either sign); modulo the range for integers.
uint64_t Encode(const Type& type, int64_t number);

}  // namespace railhead::perf

#endif  // RAILHEAD_RUNTIME_PERF_TYPES_H_
