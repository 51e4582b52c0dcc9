// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/api/operators.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "absl/strings/str_cat.h"
#include "railhead/railhead.h"
#include "runtime/comm/api/arguments.h"
#include "runtime/comm/api/on_host.h"
#include "runtime/reduce/reduce.h"

namespace railhead::comm {
namespace {

// Number of the first operator that a program creates.
constexpr int kFirstOwnOperator = 1024;

absl::Status FindOwn(rhComm_t comm, rhDataType_t type, rhRedOp_t op,
                     std::optional<reduce::Scalar>& factor) {
  const std::lock_guard<std::mutex> lock(comm->state);
  const auto index = static_cast<size_t>(op - kFirstOwnOperator);
  if (index >= comm->operators.size() || !comm->operators[index].has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("op ", op, " does not exist in this communicator"));
  }
  const rhComm::Operator& own = *comm->operators[index];
  if (own.type != type) {
    return absl::InvalidArgumentError(
        absl::StrCat("op ", op, " was made for datatype ", own.type, ", not ", type));
  }
  factor = own.factor;
  return absl::OkStatus();
}

}  // namespace

absl::Status FindOperator(rhComm_t comm, rhDataType_t type, rhRedOp_t* op,
                          std::optional<reduce::Scalar>& factor) {
  if (*op < kFirstOwnOperator) return WrongOperator(type, *op);
  absl::Status wrong = FindOwn(comm, type, *op, factor);
  *op = rhSum;
  return wrong;
}

}  // namespace railhead::comm

// NOLINTBEGIN(readability-identifier-naming): these names are the C API.

using railhead::comm::CannotUse;
using railhead::comm::Guard;
using railhead::comm::kFirstOwnOperator;
using railhead::comm::NullArgument;
using railhead::comm::Report;
using railhead::comm::WrongArgument;

rhResult_t rhRedOpCreatePreMulSum(rhRedOp_t* op, void* scalar, rhDataType_t datatype,
                                  rhScalarResidence_t /*residence*/, rhComm_t comm) {
  return Guard(comm, [&] {
    if (const rhResult_t cannot = CannotUse("rhRedOpCreatePreMulSum", comm); cannot != rhSuccess) {
      return cannot;
    }
    if (op == nullptr) return NullArgument(comm, "rhRedOpCreatePreMulSum", "op");
    if (scalar == nullptr) return NullArgument(comm, "rhRedOpCreatePreMulSum", "scalar");
    const absl::Status wrong = railhead::comm::WrongType(datatype);
    if (!wrong.ok()) return WrongArgument(comm, "rhRedOpCreatePreMulSum", wrong);
    // The factor may be in GPU memory, whatever the residence argument is.
    alignas(alignof(std::max_align_t)) std::array<std::byte, sizeof(uint64_t)> copy{};
    const absl::Status copied = railhead::comm::CopyToHost(
        *comm->communicator, scalar, railhead::reduce::SizeOf(datatype), copy.data());
    if (!copied.ok()) {
      return Report(comm, rhSystemError,
                    absl::StrCat("rhRedOpCreatePreMulSum: scalar: ", copied.message()));
    }
    const std::lock_guard<std::mutex> lock(comm->state);
    auto& operators = comm->operators;
    auto place = std::find(operators.begin(), operators.end(), std::nullopt);
    if (place == operators.end()) place = operators.emplace(place);
    place->emplace(rhComm::Operator{datatype, railhead::reduce::ReadScalar(datatype, copy.data())});
    *op = static_cast<rhRedOp_t>(kFirstOwnOperator + (place - operators.begin()));
    return rhSuccess;
  });
}

rhResult_t rhRedOpDestroy(rhRedOp_t op, rhComm_t comm) {
  return Guard(comm, [&] {
    if (const rhResult_t cannot = CannotUse("rhRedOpDestroy", comm); cannot != rhSuccess) {
      return cannot;
    }
    {
      const std::lock_guard<std::mutex> lock(comm->state);
      const auto index = static_cast<size_t>(op - kFirstOwnOperator);
      if (op >= kFirstOwnOperator && index < comm->operators.size() &&
          comm->operators[index].has_value()) {
        comm->operators[index].reset();
        return rhSuccess;
      }
    }
    return Report(comm, rhInvalidArgument,
                  absl::StrCat("rhRedOpDestroy: op ", static_cast<int>(op),
                               " is not one of rhRedOpCreatePreMulSum"));
  });
}

// NOLINTEND(readability-identifier-naming)
