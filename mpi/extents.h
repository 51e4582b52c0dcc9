// SPDX-License-Identifier: Apache-2.0
//
// Sizes and places in bytes of MPI's counts and displacements, which are in elements of a type. All
// arithmetic with counts is here, and reports what no memory can hold. Pure.
//
//   size_t bytes = 0;
//   Outcome outcome = SizeOf(count, *type, 1, &bytes);
//   if (outcome.ok()) outcome = Agree(bytes, expected);
#ifndef RAILHEAD_MPI_EXTENTS_H_
#define RAILHEAD_MPI_EXTENTS_H_

#include <cstddef>
#include <vector>

#include "mpi/objects.h"

namespace railhead::mpi {

// Sets *bytes to the size of `count` elements. MPI_ERR_COUNT if `parts` times as many are more than
// a process can have. `count` is not negative.
Outcome SizeOf(int count, const Datatype& type, int parts, size_t* bytes);

// The parts of a buffer, one for each rank.
struct Parts {
  std::vector<size_t> sizes;
  // Offset of each part from the beginning of the lowest; 0 for parts without elements.
  std::vector<size_t> offsets;
  ptrdiff_t lowest = 0;  // where the lowest part begins in the buffer; MPI allows before it

  size_t total() const;
};

// Sets *parts. `displacements` may be null: the parts follow each other. MPI_ERR_COUNT or
// MPI_ERR_ARG if they exceed the memory that a process can have. Counts are not negative.
Outcome PartsOf(const int* counts, const int* displacements, int ranks, const Datatype& type,
                Parts* parts);

// Checks that a message of `sent` bytes is what the buffer at its destination expects.
// MPI_ERR_TRUNCATE if it is larger; MPI_ERR_COUNT if it is smaller, which MPI allows for sends and
// receives only.
Outcome Agree(size_t sent, size_t expected);

}  // namespace railhead::mpi

#endif  // RAILHEAD_MPI_EXTENTS_H_
