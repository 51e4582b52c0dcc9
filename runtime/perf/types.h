// SPDX-License-Identifier: Apache-2.0
//
// The element types and operators by their names, and whole numbers as elements of any type.
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
  const char* name;  // that of nccl-tests
  size_t bytes;
  bool is_signed;
  // Of floats; 0 of integers.
  int exponent_bits;
  int mantissa_bits;

  bool is_integer() const { return exponent_bits == 0; }
  // All whole numbers up to this one exist in the type, and no sum of ours needs more.
  int64_t exact() const;
};

struct Operator {
  rhRedOp_t value;
  const char* name;
  bool on_bits;  // for integers only
};

absl::Span<const Type> Types();
absl::Span<const Operator> Operators();

// One type, and one operator where values are reduced (else nullptr).
struct Kind {
  const Type* type = nullptr;
  const Operator* op = nullptr;
};

// Stands for every type, or every operator.
inline constexpr const char* kAll = "all";

// The kinds that these names stand for, without bit operators on floats. InvalidArgument if a name
// is unknown or nothing is left.
absl::StatusOr<std::vector<Kind>> Kinds(bool reduces, absl::string_view type, absl::string_view op);

// The bits of `number` in the low bytes: exactly it where a float has it (up to exact(), with
// either sign), and modulo the type's range where an integer has not.
uint64_t Encode(const Type& type, int64_t number);

}  // namespace railhead::perf

#endif  // RAILHEAD_RUNTIME_PERF_TYPES_H_
