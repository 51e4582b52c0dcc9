// SPDX-License-Identifier: Apache-2.0
#include "mpi/reduction.h"

#include <algorithm>
#include <climits>
#include <complex>
#include <cstdint>
#include <cstring>

namespace railhead::mpi {
namespace {

std::optional<rhRedOp_t> OfNumbers(Operation operation) {
  switch (operation) {
    case Operation::kSum:
      return rhSum;
    case Operation::kProduct:
      return rhProd;
    case Operation::kMax:
      return rhMax;
    case Operation::kMin:
      return rhMin;
    case Operation::kBitwiseAnd:
      return rhBand;
    case Operation::kBitwiseOr:
      return rhBor;
    case Operation::kBitwiseXor:
      return rhBxor;
    default:
      return std::nullopt;
  }
}

// A bool is 0 or 1, so its operators are those of numbers; a sum is whether any is true.
std::optional<rhRedOp_t> OfBools(Operation operation) {
  switch (operation) {
    case Operation::kSum:
    case Operation::kMax:
    case Operation::kLogicalOr:
    case Operation::kBitwiseOr:
      return rhMax;
    case Operation::kProduct:
    case Operation::kMin:
    case Operation::kLogicalAnd:
    case Operation::kBitwiseAnd:
      return rhMin;
    case Operation::kLogicalXor:
    case Operation::kBitwiseXor:
      return rhBxor;
    default:
      return std::nullopt;
  }
}

bool IsFloat(rhDataType_t type) { return type == rhFloat32 || type == rhFloat64; }

// `function` for each pair of elements; they may lie anywhere.
template <typename T, typename Function>
Fold Each(Function function) {
  return [function](const void* in, void* inout, size_t count) {
    const auto* from = static_cast<const char*>(in);
    auto* to = static_cast<char*>(inout);
    for (size_t i = 0; i < count; ++i, from += sizeof(T), to += sizeof(T)) {
      T a;
      T b;
      std::memcpy(&a, from, sizeof(T));
      std::memcpy(&b, to, sizeof(T));
      b = function(a, b);
      std::memcpy(to, &b, sizeof(T));
    }
  };
}

template <typename T>
Fold Product() {
  return Each<T>([](T a, T b) { return a * b; });
}

template <typename T>
Fold LogicalOn(Operation operation) {
  switch (operation) {
    case Operation::kLogicalAnd:
      return Each<T>([](T a, T b) -> T { return a != 0 && b != 0; });
    case Operation::kLogicalOr:
      return Each<T>([](T a, T b) -> T { return a != 0 || b != 0; });
    default:
      return Each<T>([](T a, T b) -> T { return (a != 0) != (b != 0); });
  }
}

Fold Logical(size_t bytes, Operation operation) {
  switch (bytes) {
    case 1:
      return LogicalOn<uint8_t>(operation);
    case 2:
      return LogicalOn<uint16_t>(operation);
    case 4:
      return LogicalOn<uint32_t>(operation);
    default:
      return LogicalOn<uint64_t>(operation);
  }
}

// If values are equal, the one with the lower index, as MPI has it.
template <typename T>
Fold Extreme(Operation operation) {
  const bool most = operation == Operation::kMaxAt;
  return Each<ValueAt<T>>([most](const ValueAt<T>& a, const ValueAt<T>& b) {
    if (a.value == b.value) return a.index < b.index ? a : b;
    return (a.value > b.value) == most ? a : b;
  });
}

Fold ExtremeOf(const Datatype& pair, Operation operation) {
  switch (pair.number) {
    case rhInt16:
      return Extreme<int16_t>(operation);
    case rhInt32:
      return Extreme<int32_t>(operation);
    case rhInt64:
      return Extreme<int64_t>(operation);
    case rhFloat32:
      return Extreme<float>(operation);
    default:
      return Extreme<double>(operation);
  }
}

template <typename T>
Fold SumOrProduct(Operation operation) {
  if (operation == Operation::kSum) return Each<T>([](T a, T b) { return a + b; });
  return operation == Operation::kProduct ? Product<T>() : nullptr;
}

// NOLINTBEGIN(google-runtime-float): it is MPI's type.
Fold OfWide(size_t parts, Operation operation) {
  if (parts == 2) return SumOrProduct<std::complex<long double>>(operation);
  using T = long double;
  if (operation == Operation::kMax) return Each<T>([](T a, T b) { return std::max(a, b); });
  if (operation == Operation::kMin) return Each<T>([](T a, T b) { return std::min(a, b); });
  return SumOrProduct<T>(operation);
}
// NOLINTEND(google-runtime-float)

Fold ByProgram(Datatype* type, UserFunction function) {
  return [type, function](const void* in, void* inout, size_t count) {
    const auto* from = static_cast<const char*>(in);
    auto* to = static_cast<char*>(inout);
    while (count > 0) {
      auto length = static_cast<int>(std::min<size_t>(count, INT_MAX));
      const size_t done = static_cast<size_t>(length);
      Datatype* handle = type;
      // MPI's prototype lacks the const.
      function(const_cast<char*>(from), to, &length, &handle);
      from += done * type->bytes;
      to += done * type->bytes;
      count -= done;
    }
  };
}

}  // namespace

std::optional<Native> NativeReduction(const Datatype& type, const Operator& op) {
  std::optional<rhRedOp_t> native;
  switch (type.arithmetic) {
    case Arithmetic::kNone:
    case Arithmetic::kWide:
    case Arithmetic::kPair:
      return std::nullopt;
    case Arithmetic::kNumber:
      native = OfNumbers(op.operation);
      if (native >= rhBand && IsFloat(type.number)) return std::nullopt;
      break;
    case Arithmetic::kLogical:
      native = OfBools(op.operation);
      break;
    case Arithmetic::kComplex:
      if (op.operation == Operation::kSum) native = rhSum;
      break;
  }
  if (!native.has_value()) return std::nullopt;
  return Native{type.number, *native, type.parts};
}

Fold FoldedReduction(Datatype* type, const Operator& op) {
  if (op.operation == Operation::kProgram) return ByProgram(type, op.function);
  if (type->arithmetic == Arithmetic::kWide) return OfWide(type->parts, op.operation);
  switch (op.operation) {
    case Operation::kMaxAt:
    case Operation::kMinAt:
      return type->arithmetic == Arithmetic::kPair ? ExtremeOf(*type, op.operation) : nullptr;
    case Operation::kProduct:
      if (type->arithmetic != Arithmetic::kComplex) return nullptr;
      return type->number == rhFloat32 ? Product<std::complex<float>>()
                                       : Product<std::complex<double>>();
    case Operation::kLogicalAnd:
    case Operation::kLogicalOr:
    case Operation::kLogicalXor:
      if (type->arithmetic != Arithmetic::kNumber || IsFloat(type->number)) return nullptr;
      return Logical(type->bytes, op.operation);
    default:
      return nullptr;
  }
}

}  // namespace railhead::mpi
