// SPDX-License-Identifier: Apache-2.0
//
// MPI's operators on MPI's types: by librailhead if it has them, else element by element. Pure.
// Used by the collectives.
#ifndef RAILHEAD_MPI_REDUCTION_H_
#define RAILHEAD_MPI_REDUCTION_H_

#include <cstddef>
#include <functional>
#include <optional>

#include "mpi/objects.h"
#include "railhead/railhead.h"

namespace railhead::mpi {

// A reduction that librailhead does itself: `parts` elements of `type` for each element of MPI's.
struct Native {
  rhDataType_t type;
  rhRedOp_t op;
  size_t parts;
};
std::optional<Native> NativeReduction(const Datatype& type, const Operator& op);

// inout[i] = in[i] op inout[i], for `count` elements.
using Fold = std::function<void(const void* in, void* inout, size_t count)>;

// A reduction that is done here, element by element: products of complex numbers, logical operators
// on integers, MPI_MAXLOC and MPI_MINLOC, long doubles, and the program's own. Null where MPI does
// not define `op` for `type`. `type` is the program's handle, which its function gets.
Fold FoldedReduction(Datatype* type, const Operator& op);

}  // namespace railhead::mpi

#endif  // RAILHEAD_MPI_REDUCTION_H_
