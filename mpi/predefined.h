// SPDX-License-Identifier: Apache-2.0
//
// Handles that MPI predefines and the library itself compares with or returns. The objects are
// exported symbols: a program that is linked with the library may have replaced them by its own
// copies.
#ifndef RAILHEAD_MPI_PREDEFINED_H_
#define RAILHEAD_MPI_PREDEFINED_H_

#include "mpi/objects.h"

namespace railhead::mpi {

Communicator* CommWorld();
Communicator* CommSelf();
Communicator* CommNull();
Datatype* DatatypeNull();
Operator* OperatorNull();
Request* RequestNull();
ErrorHandler* ErrorsReturn();
ErrorHandler* ErrorsAreFatal();
ErrorHandler* ErrorHandlerNull();
bool IsPredefined(const Datatype* type);
bool IsPredefined(const Operator* op);

}  // namespace railhead::mpi

#endif  // RAILHEAD_MPI_PREDEFINED_H_
