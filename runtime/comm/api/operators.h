// SPDX-License-Identifier: Apache-2.0
//
// Operators of the C API: those of all communicators, and those that a program creates.
#ifndef RAILHEAD_RUNTIME_COMM_API_OPERATORS_H_
#define RAILHEAD_RUNTIME_COMM_API_OPERATORS_H_

#include <optional>

#include "absl/status/status.h"
#include "runtime/comm/api/handle.h"
#include "runtime/reduce/scalar.h"

namespace railhead::comm {

// Sets `*op` to the communicator's operator, and `factor` to what multiplies this rank's values
// before it, if anything does. Returns InvalidArgument if there is no such operator for the type,
// which must exist.
absl::Status FindOperator(rhComm_t comm, rhDataType_t type, rhRedOp_t* op,
                          std::optional<reduce::Scalar>& factor);

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_API_OPERATORS_H_
