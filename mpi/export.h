// SPDX-License-Identifier: Apache-2.0
//
// Macro that defines and exports a function of MPI. Used by export_*.cc and unserved.cc.
#ifndef RAILHEAD_MPI_EXPORT_H_
#define RAILHEAD_MPI_EXPORT_H_

#define RAILHEAD_MPI_VISIBLE __attribute__((visibility("default")))

// RAILHEAD_MPI(Bcast, parameters...) { ... } defines a function of MPI under both names that it is
// called by: MPI_Bcast, as in Open MPI's library, and MPIABI_Bcast, as MPItrampoline looks it up.
// Handles are pointers in one and integers of that size in the other, which are passed alike.
#define RAILHEAD_MPI(name, ...)                                            \
  extern "C" RAILHEAD_MPI_VISIBLE int MPI_##name(__VA_ARGS__);             \
  extern "C" RAILHEAD_MPI_VISIBLE                                          \
      __attribute__((alias("MPI_" #name))) int MPIABI_##name(__VA_ARGS__); \
  extern "C" int MPI_##name(__VA_ARGS__)

#endif  // RAILHEAD_MPI_EXPORT_H_
