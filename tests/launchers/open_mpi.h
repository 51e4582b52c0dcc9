/* SPDX-License-Identifier: Apache-2.0
 *
 * The part of Open MPI's mpi.h that sum.c uses: programs refer to its objects by these names.
 */
#ifndef RAILHEAD_TESTS_LAUNCHERS_OPEN_MPI_H_
#define RAILHEAD_TESTS_LAUNCHERS_OPEN_MPI_H_

struct ompi_communicator_t;
struct ompi_datatype_t;
struct ompi_op_t;
extern struct ompi_communicator_t ompi_mpi_comm_world;
extern struct ompi_datatype_t ompi_mpi_double;
extern struct ompi_op_t ompi_mpi_op_sum;
#define MPI_COMM_WORLD (&ompi_mpi_comm_world)
#define MPI_DOUBLE (&ompi_mpi_double)
#define MPI_SUM (&ompi_mpi_op_sum)

int MPI_Init(int* argc, char*** argv);
int MPI_Finalize(void);
int MPI_Comm_rank(struct ompi_communicator_t* comm, int* rank);
int MPI_Comm_size(struct ompi_communicator_t* comm, int* size);
int MPI_Allreduce(const void* send, void* receive, int count, struct ompi_datatype_t* type,
                  struct ompi_op_t* op, struct ompi_communicator_t* comm);

#endif /* RAILHEAD_TESTS_LAUNCHERS_OPEN_MPI_H_ */
