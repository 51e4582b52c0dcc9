/* SPDX-License-Identifier: Apache-2.0
 *
 * Railhead: collectives over all RDMA rails of a pod, or over TCP if there is no RDMA.
 *
 * The interface follows NCCL's: to port a program, rename nccl to rh. Result codes, data types and
 * operators have NCCL's numbers. Differences: with `stream` NULL a call blocks until it is done;
 * with a stream of rhStreamCreate it returns at once. rhConfig_t.blocking = 0 applies to the start
 * and the end of a communicator only. A process holds one rank of a communicator.
 *
 * A first program:
 *
 *     rhComm_t comm;
 *     if (rhCommInitFromEnv(&comm) != rhSuccess) {
 *       fprintf(stderr, "%s\n", rhGetLastError(NULL));
 *       return 1;
 *     }
 *     if (rhAllReduce(in, out, count, rhFloat32, rhSum, comm, NULL) != rhSuccess) {
 *       fprintf(stderr, "%s\n", rhGetLastError(comm));
 *       rhCommAbort(comm);
 *       return 1;
 *     }
 *     rhCommDestroy(comm);
 *
 * Every rank is a process with its RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT in the
 * environment, which the Railhead operator sets in pods that request rdma/hca. `railhead-perf
 * --help-env` lists all variables that the library reads.
 *
 * Errors. The start fails if a rank is missing after RAILHEAD_START_TIMEOUT_SECONDS (60). A call
 * fails if it makes no progress for RAILHEAD_TIMEOUT_SECONDS (60), and usually at once if a process
 * dies. A call waits for a rank that is alive and has not called yet; the other ranks log its
 * number. A rank that stops (or is frozen, or loses its machine) and does not answer queries
 * for that time fails the calls that wait, at most 1.2 times as long after its last answer. If one
 * rank fails, the calls of all ranks fail, with a text that names the rank and the cause. After a
 * failed collective the communicator can only be aborted or destroyed.
 *
 * Threads. One communicator is used by one thread at a time (a second call at the same time returns
 * rhInvalidUsage), except rhCommAbort, rhCommRevoke, rhIsend, rhIrecv and the query functions,
 * which any thread may call. Different communicators are independent. A stream counts as the thread
 * of its calls. After fork() only the parent may use a communicator: the library closes its
 * connections in the child, so that other ranks notice if the parent dies. (vfork, and clone
 * without fork's handlers, do not do that.)
 *
 * GPU memory. Any buffer except those of rhIsend and rhIrecv may be memory of a CUDA device,
 * independent of the other buffers. Inputs
 * must be complete when a call begins: synchronize the CUDA streams that write them. Outputs are
 * complete when the call is done. The CPU computes the collectives: the library copies such buffers
 * through pinned host memory of the same size, which the communicator keeps. RDMA adapters read GPU
 * memory directly in two cases only: rhSend, and rhBroadcast's root with one rank per pod, if the
 * message has more than 16 KiB and rhCommRegister has registered the memory. After a failure of the
 * CUDA driver, calls fail. CUDA graphs do not record calls: make none with memory that a stream
 * writes or reads while it is captured. Other streams may be captured at the same time if they were
 * created with cudaStreamNonBlocking, as frameworks do.
 */
#ifndef RAILHEAD_RAILHEAD_H_
#define RAILHEAD_RAILHEAD_H_

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

/* NOLINTBEGIN(modernize-use-using): C has only typedef. */
#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define RH_EXPORT __attribute__((visibility("default")))
#else
#define RH_EXPORT
#endif

/* Gives an enumeration the size of an int, and every int as a possible value, in C++ as in C. */
#ifdef __cplusplus
#define RH_INT_ENUM : int
#else
#define RH_INT_ENUM
#endif

/* The version of this header: 10000 * major + 100 * minor + patch. */
#define RH_VERSION_CODE 100

/* Result of a call. rhGetLastError has the details. */
typedef enum RH_INT_ENUM {
  rhSuccess = 0,
  rhSystemError = 2,     /* the operating system, a device or a policy refused it */
  rhInternalError = 3,   /* a defect of the library, or ranks with contradicting calls */
  rhInvalidArgument = 4, /* an argument or an environment variable is wrong */
  rhInvalidUsage = 5,    /* the call is not allowed now */
  rhRemoteError = 6,     /* another rank, or the connection to it, failed */
  rhInProgress = 7       /* not finished yet; only calls of rhConfig_t.blocking = 0 return it */
} rhResult_t;

/* Element types. The 8-bit floats are those of the OCP specification: e4m3 has no infinity, and its
 * largest value is 448; e5m2 is a truncated IEEE half. NCCL does not have the 16-bit integers. */
typedef enum RH_INT_ENUM {
  rhInt8 = 0,
  rhUint8 = 1,
  rhInt32 = 2,
  rhUint32 = 3,
  rhInt64 = 4,
  rhUint64 = 5,
  rhFloat16 = 6,
  rhFloat32 = 7,
  rhFloat64 = 8,
  rhBfloat16 = 9,
  rhFloat8e4m3 = 10,
  rhFloat8e5m2 = 11,
  rhInt16 = 12,
  rhUint16 = 13
} rhDataType_t;

/* Reduction operators. The bitwise ones accept integers only; NCCL does not have them. */
typedef enum RH_INT_ENUM {
  rhSum = 0,
  rhProd = 1,
  rhMax = 2,
  rhMin = 3,
  rhAvg = 4,
  rhBand = 5,
  rhBor = 6,
  rhBxor = 7
} rhRedOp_t;

/* Communicator: a group of ranks, and this process's rank in it. */
typedef struct rhComm* rhComm_t;

/* Queue of calls that a background thread runs in order. */
typedef struct rhStream* rhStream_t;

/* Handle to wait for unfinished calls of a stream, or for a transfer. */
typedef struct rhRequest* rhRequest_t;

/* Memory of each rank of a communicator that the other ranks can access directly. */
typedef struct rhWindow* rhWindow_t;

/* Options of a communicator. Create it with the initializer, then set fields:
 *
 *     rhConfig_t config = RH_CONFIG_INITIALIZER;
 *     config.commName = "tensor_parallel";
 *     config.timeoutSeconds = 300;
 *
 * A field is unset if the program leaves it as the initializer made it. An unset field takes its
 * value from the environment; in rhCommSplit, rhCommShrink and rhCommGrow it takes that of `comm`.
 * A field that is set overrides the variable named beside it, and accepts the same values
 * (`railhead-perf --help-env` lists them). The caller keeps the struct and its texts; the library
 * reads them before the call returns.
 *
 * All ranks of a communicator must set equal values, except for blocking, metrics, socketIfname and
 * secretFile. Otherwise the start fails on all ranks with rhInvalidArgument, and the text names two
 * ranks and their values. A value that is not allowed returns rhInvalidArgument before anything is
 * done.
 *
 * Later versions add fields at the end; 0 leaves them unset. So a program may be older or newer
 * than the library. A newer one gets rhInvalidArgument if it sets a field that the library lacks.
 */
#define RH_CONFIG_UNDEF_INT INT_MIN
#define RH_CONFIG_UNDEF_PTR NULL
#define RH_CONFIG_MAGIC 0x52484331U
typedef struct rhConfig {
  /* Set by the initializer. */
  size_t size;
  unsigned int magic;
  unsigned int version;
  /* 0: rhCommInitRankConfig and rhCommFinalize return at once; so do rhCommSplit, rhCommShrink and
   * rhCommGrow if it is 0 in their config, or unset there and 0 in `comm`. Else these calls
   * block. */
  int blocking;
  int timeoutSeconds;      /* RAILHEAD_TIMEOUT_SECONDS */
  int startTimeoutSeconds; /* RAILHEAD_START_TIMEOUT_SECONDS */
  /* 0: the metrics page leaves out this communicator. 1, or unset: the page includes it, if
   * RAILHEAD_METRICS_PORT enables a page. */
  int metrics;
  /* Name of up to 64 bytes: part of messages, and the label `comm` of its collectives' metrics. */
  const char* commName;
  const char* transport;    /* RAILHEAD_TRANSPORT */
  const char* fallback;     /* RAILHEAD_FALLBACK */
  const char* rails;        /* RAILHEAD_RAILS: RDMA rails to use, as "0,2" or "0-3" */
  const char* socketIfname; /* RAILHEAD_SOCKET_IFNAME: interfaces to use as TCP rails */
  const char* secretFile;   /* RAILHEAD_SECRET_FILE; "": no secret */
} rhConfig_t;
#define RH_CONFIG_INITIALIZER                                                               \
  {                                                                                         \
    sizeof(rhConfig_t), RH_CONFIG_MAGIC, RH_VERSION_CODE, RH_CONFIG_UNDEF_INT,              \
        RH_CONFIG_UNDEF_INT, RH_CONFIG_UNDEF_INT, RH_CONFIG_UNDEF_INT, RH_CONFIG_UNDEF_PTR, \
        RH_CONFIG_UNDEF_PTR, RH_CONFIG_UNDEF_PTR, RH_CONFIG_UNDEF_PTR, RH_CONFIG_UNDEF_PTR, \
        RH_CONFIG_UNDEF_PTR                                                                 \
  }

/* Identifies a group that is about to form: the address at which its ranks meet, and a random key
 * that keeps other processes out. Plain bytes; send them to all ranks by any means. */
#define RH_UNIQUE_ID_BYTES 128
typedef struct {
  char internal[RH_UNIQUE_ID_BYTES];
} rhUniqueId;

/* Writes the library's version, coded as RH_VERSION_CODE. Returns rhInvalidArgument if `version` is
 * NULL. */
RH_EXPORT rhResult_t rhGetVersion(int* version);

/* Returns a short static text for a result, never NULL. Do not free it. */
RH_EXPORT const char* rhGetErrorString(rhResult_t result);

/* Returns the full text of the last failure: rank, pod, rail, device, cause and fix. With a
 * communicator: of its last failed call. With NULL: of this thread's last failed call that had no
 * communicator (rhCommInit...). Returns "" if no call failed. The library owns the text; it stays
 * valid until the next call that fails (of the communicator, or of the thread with NULL). After
 * rhCommGetAsyncError reported a failure, returns the text of that failure; the pointer returned
 * before stays valid. */
RH_EXPORT const char* rhGetLastError(rhComm_t comm);

/* Creates an id for a new group. Call it once, in the process of the future rank 0: it opens the
 * socket at which the ranks meet. Then send the id to all ranks. The address in it is that of the
 * first interface of RAILHEAD_SOCKET_IFNAME; by default, of the first interface that is not
 * loopback and whose address is not link-local (169.254.0.0/16, fe80::/10), if there is one.
 * Without a RAILHEAD_SECRET_FILE, every process that has the id can join the group: send it over a
 * channel that only the ranks can read. */
RH_EXPORT rhResult_t rhGetUniqueId(rhUniqueId* id);

/* Joins the group `id` of `nranks` ranks as `rank` (0 to nranks-1, each once). Blocks until all
 * ranks have called it. Writes a communicator, which the caller must destroy or abort. On failure
 * *comm is NULL, and rhGetLastError(NULL) has the reason. */
RH_EXPORT rhResult_t rhCommInitRank(rhComm_t* comm, int nranks, rhUniqueId id, int rank);

/* rhCommInitRank with options (NULL: all fields are unset). With blocking = 0, returns rhInProgress
 * at once, and *comm is a communicator in progress: rhCommGetAsyncError writes rhInProgress until
 * the start is done (rhSuccess) or has failed (rhGetLastError(comm) has the reason; destroy *comm).
 * Until then rhCommAbort cancels the start, and other calls return rhInvalidUsage.
 *
 *     config.blocking = 0;
 *     rhCommInitRankConfig(&comm, nranks, id, rank, &config);
 *     do {
 *       load_data();
 *       rhCommGetAsyncError(comm, &state);
 *     } while (state == rhInProgress); */
RH_EXPORT rhResult_t rhCommInitRankConfig(rhComm_t* comm, int nranks, rhUniqueId id, int rank,
                                          rhConfig_t* config);

/* rhCommInitRank for the group that RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT describe, or the
 * launcher's variables: torchrun, mpirun, mpiexec, flux run, srun (railhead-environment(7)). */
RH_EXPORT rhResult_t rhCommInitFromEnv(rhComm_t* comm);

/* Completes the communicator's work: waits until its calls on a stream are done, all data that this
 * rank sent has arrived, and all other ranks have called this or rhCommDestroy. Call it on all
 * ranks. Returns rhRemoteError if another rank did not call within RAILHEAD_TIMEOUT_SECONDS, or
 * failed. With blocking = 0 returns rhInProgress at once, and rhCommGetAsyncError writes the
 * state. Afterwards, on success or failure, only queries and rhCommDestroy are allowed. */
RH_EXPORT rhResult_t rhCommFinalize(rhComm_t comm);

/* Leaves the group and frees the communicator. Call it on all ranks, in any order of communicators.
 * Waits for the other ranks for 0.1 s, unless it waits for those of other communicators already,
 * and then up to 10 s in the background, so that no rank loses the last bytes of a collective; the
 * end of the process (exit, return from main) waits for that. NULL is allowed. */
RH_EXPORT rhResult_t rhCommDestroy(rhComm_t comm);

/* Aborts the communicator on all ranks and frees it. A collective that runs in another thread
 * returns an error first; calls that wait on a stream do not start. Do not use the communicator
 * afterwards. NULL is allowed. */
RH_EXPORT rhResult_t rhCommAbort(rhComm_t comm);

/* Fails the calls of the communicator on all ranks without freeing it: calls that run, and later
 * ones, return rhRemoteError (a call that all ranks have started may still succeed). The
 * communicator can then be shrunk, aborted or destroyed. Any thread may call it, also while another
 * thread is about to start a call, when rhCommAbort is not allowed. `revoke_flags` must be 0.
 * (NCCL's ncclCommRevoke.) */
RH_EXPORT rhResult_t rhCommRevoke(rhComm_t comm, int revoke_flags);

/* Creates communicators of the ranks of `comm` that pass the same `color` (not negative), ordered
 * by `key`, and by their rank in `comm` if keys are equal. Call it on all ranks of `comm`; a rank
 * that passes RH_SPLIT_NOCOLOR gets NULL. Blocks, and does not change `comm`. `config` may be NULL,
 * here and below. With blocking = 0 (here and below), returns rhInProgress at once: *newcomm is a
 * communicator in progress, as with rhCommInitRankConfig. Meanwhile `comm` accepts rhCommAbort and
 * rhCommGetAsyncError only. */
#define RH_SPLIT_NOCOLOR (-1)
RH_EXPORT rhResult_t rhCommSplit(rhComm_t comm, int color, int key, rhComm_t* newcomm,
                                 rhConfig_t* config);

/* Creates a communicator of the ranks of `comm` except `exclude_count` of them, in their old order.
 * Call it on all remaining ranks, with the same list. `comm` may have failed: so training continues
 * without a lost rank. No call of `comm` may be unfinished. Fails at once if a remaining rank dies
 * during the call. Abort or destroy `comm` afterwards. */
RH_EXPORT rhResult_t rhCommShrink(rhComm_t comm, const int* exclude_ranks, int exclude_count,
                                  rhComm_t* newcomm, rhConfig_t* config);

/* Creates a communicator of the ranks of `comm` and new ranks, `nranks` in total. Ranks of `comm`
 * keep their numbers and pass rank -1. New ranks pass `comm` NULL, and a rank from the old count
 * up. All pass the same `id`, which rank 0 has created. New ranks pass a `config` with the values
 * of `comm`. Abort or destroy `comm` afterwards. */
RH_EXPORT rhResult_t rhCommGrow(rhComm_t comm, int nranks, rhUniqueId id, int rank,
                                rhComm_t* newcomm, rhConfig_t* config);

/* Writes the state of the communicator, without waiting: rhSuccess; rhInProgress while its start,
 * calls on a stream or rhCommFinalize are not done; or the result of a failure on any rank. Any
 * thread may call it. */
RH_EXPORT rhResult_t rhCommGetAsyncError(rhComm_t comm, rhResult_t* async_error);

/* Write the number of ranks, and this process's rank. */
RH_EXPORT rhResult_t rhCommCount(rhComm_t comm, int* count);
RH_EXPORT rhResult_t rhCommUserRank(rhComm_t comm, int* rank);

/* Allocate and free memory that other ranks can access without a copy. rhMemAlloc writes to *ptr
 * the address of `size` zero bytes, aligned to a page. It returns rhSystemError if `size` is more
 * than half of the memory that this process can still allocate. rhMemFree accepts a pointer from
 * rhMemAlloc, or NULL; windows and rhCommRegister keep the memory until they release it. Any thread
 * may call them; rhGetLastError(NULL) has the reason of a failure. */
RH_EXPORT rhResult_t rhMemAlloc(void** ptr, size_t size);
RH_EXPORT rhResult_t rhMemFree(void* ptr);

/* Registers `size` bytes at `buff` as a window on each rank of `comm`. On each rank they must lie
 * in one allocation of rhMemAlloc; ranks may pass different addresses and sizes. Call it on all
 * ranks; it blocks. Collectives of more than 4 KiB whose buffers are in windows on all ranks then
 * work in place, in 0.4 to 0.7 of the time (docs/bench-allreduce.md); all others work as before.
 * Only ranks of one pod can access each other's memory; between pods a window has the effect of
 * rhCommRegister. During a call, other ranks write into its receive buffer, and into nothing else
 * of a window. If the call fails, a rank that is late changes nothing afterwards: the buffer gets
 * pages of its own. Windows do not reach these pages any more (calls with them are right, but
 * copy), and what others have registered of them (cudaHostRegister) is not what the program then
 * writes. `win_flags` must be 0. rhInvalidArgument is returned on all ranks, and the communicator
 * stays usable. (NCCL's ncclCommWindowRegister.) */
RH_EXPORT rhResult_t rhCommWindowRegister(rhComm_t comm, void* buff, size_t size, rhWindow_t* win,
                                          int win_flags);

/* Deregisters a window. Call it on all ranks, between the same collectives. Destroying the
 * communicator deregisters its windows. */
RH_EXPORT rhResult_t rhCommWindowDeregister(rhComm_t comm, rhWindow_t win);

/* Registers `size` bytes at `buff` with the RDMA adapters that `comm` uses: they then send messages
 * of more than 16 KiB from there without a copy. Accepts any memory of this process, also several
 * times. Keep it mapped until it is deregistered; otherwise the adapters may send its old contents.
 *  - GPU memory is registered at once, as a dma-buf or else through nvidia-peermem. If neither
 *    works, the library copies it through the host, and the communicator is degraded until then,
 *    with the reason in rhCommGetInfo. Do not free it before it is deregistered.
 *  - Host memory is pinned, at once too. If that fails (RAILHEAD_LOG=info logs the cause), the
 *    library copies it as if it were not registered.
 * CUDA managed memory and networks without RDMA are not affected. A window does the same for this
 * rank. The call is local to this rank; any thread may call it at any time. (NCCL's
 * ncclCommRegister.) */
RH_EXPORT rhResult_t rhCommRegister(rhComm_t comm, void* buff, size_t size, void** handle);

/* Deregisters a handle of rhCommRegister. No call that uses the memory may be unfinished.
 * Destroying the communicator deregisters its memory. */
RH_EXPORT rhResult_t rhCommDeregister(rhComm_t comm, void* handle);

/* Collectives. All ranks must make the same calls in the same order, with equal counts, type,
 * operator and root (rhSend and rhRecv involve two ranks only). Counts are in elements; a count of
 * 0 does nothing, and its buffers may be NULL. Buffers must be aligned for their type; the caller
 * owns them. They must not overlap, unless the call is in place: sendbuf is recvbuf or, if one of
 * them has a part for each rank, the smaller one is this rank's part of the larger one. A call does
 * not write to a send buffer that is not in place.
 *
 * Arithmetic. Integers wrap; an integer average is rounded towards zero. 16- and 8-bit floats are
 * added in fp32; they are rounded once in shared memory, and at every rank on the way over rails.
 * Overflow gives infinity; in e4m3, which has no infinity, 448: over rails 448 + 448 - 448 may give
 * 0. rhMin and rhMax give NaN if any input is NaN. Equal inputs give identical bits in every call
 * in shared memory, and over rails if RAILHEAD_ALGO sets the algorithm. Otherwise the library tries
 * algorithms to find the fastest, and a later call may add floats in another order (the same order
 * on all ranks).
 *
 * Results. rhInvalidArgument if an argument is wrong, and rhInvalidUsage if another thread uses the
 * communicator: nothing is done, and the communicator stays usable. Any other failure is final;
 * rhGetLastError names the collective, its number and the cause. */

/* On return, recvbuf[i] is the reduction over all ranks of sendbuf[i], with identical bits on all
 * ranks. Both buffers hold `count` elements. */
RH_EXPORT rhResult_t rhAllReduce(const void* sendbuf, void* recvbuf, size_t count,
                                 rhDataType_t datatype, rhRedOp_t op, rhComm_t comm,
                                 rhStream_t stream);

/* On return, recvbuf[r * sendcount + i] is sendbuf[i] of rank r. sendbuf holds `sendcount`
 * elements, recvbuf `sendcount` for each rank. In place: sendbuf is recvbuf + rank * sendcount. */
RH_EXPORT rhResult_t rhAllGather(const void* sendbuf, void* recvbuf, size_t sendcount,
                                 rhDataType_t datatype, rhComm_t comm, rhStream_t stream);

/* On return, recvbuf[i] is the reduction over all ranks of sendbuf[rank * recvcount + i]. recvbuf
 * holds `recvcount` elements, sendbuf `recvcount` for each rank. In place: recvbuf is
 * sendbuf + rank * recvcount, and the rest of sendbuf does not change. */
RH_EXPORT rhResult_t rhReduceScatter(const void* sendbuf, void* recvbuf, size_t recvcount,
                                     rhDataType_t datatype, rhRedOp_t op, rhComm_t comm,
                                     rhStream_t stream);

/* On return, recvbuf[i] is sendbuf[i] of rank `root`. Both hold `count` elements. Only the root
 * uses sendbuf; it may be NULL on other ranks. A rank may return before others have their copies.
 */
RH_EXPORT rhResult_t rhBroadcast(const void* sendbuf, void* recvbuf, size_t count,
                                 rhDataType_t datatype, int root, rhComm_t comm, rhStream_t stream);

/* On return on rank `root`, recvbuf[i] is the reduction over all ranks of sendbuf[i]. Both hold
 * `count` elements. Only the root uses recvbuf; it may be NULL on other ranks. A rank may return
 * before the root has its result. */
RH_EXPORT rhResult_t rhReduce(const void* sendbuf, void* recvbuf, size_t count,
                              rhDataType_t datatype, rhRedOp_t op, int root, rhComm_t comm,
                              rhStream_t stream);

/* Returns when all ranks have called it. (NCCL has no barrier.) */
RH_EXPORT rhResult_t rhBarrier(rhComm_t comm, rhStream_t stream);

/* rhAllGather with parts of different sizes: recvbuf[displs[r] + i] is sendbuf[i] of rank r, for i
 * below recvcounts[r]. Counts and displacements are in elements, one for each rank, equal on all
 * ranks; if `displs` is NULL, the parts follow each other. sendbuf holds recvcounts[rank] elements.
 * In place: sendbuf is recvbuf + displs[rank]. */
RH_EXPORT rhResult_t rhAllGatherv(const void* sendbuf, void* recvbuf, const size_t* recvcounts,
                                  const size_t* displs, rhDataType_t datatype, rhComm_t comm,
                                  rhStream_t stream);

/* rhReduceScatter with parts of different sizes that follow each other: rank r gets recvcounts[r]
 * elements. In place: recvbuf is this rank's part of sendbuf. */
RH_EXPORT rhResult_t rhReduceScatterv(const void* sendbuf, void* recvbuf, const size_t* recvcounts,
                                      rhDataType_t datatype, rhRedOp_t op, rhComm_t comm,
                                      rhStream_t stream);

/* On return, recvbuf[r * count + i] is sendbuf[rank * count + i] of rank r. Both hold `count`
 * elements for each rank. In place, the call allocates a buffer of the same size. */
RH_EXPORT rhResult_t rhAlltoAll(const void* sendbuf, void* recvbuf, size_t count,
                                rhDataType_t datatype, rhComm_t comm, rhStream_t stream);

/* rhAlltoAll with parts of different sizes: sendcounts[r] elements from sendbuf + sdispls[r] go to
 * rank r; recvcounts[r] elements from rank r go to recvbuf + rdispls[r]. Each count that a rank
 * sends must equal the count that the other rank expects. Displacements may be NULL, as above. Not
 * in place. */
RH_EXPORT rhResult_t rhAlltoAllv(const void* sendbuf, const size_t* sendcounts,
                                 const size_t* sdispls, void* recvbuf, const size_t* recvcounts,
                                 const size_t* rdispls, rhDataType_t datatype, rhComm_t comm,
                                 rhStream_t stream);

/* On return on rank `root`, recvbuf[r * sendcount + i] is sendbuf[i] of rank r. Only the root uses
 * recvbuf; it may be NULL on other ranks. In place on the root: sendbuf is
 * recvbuf + root * sendcount. */
RH_EXPORT rhResult_t rhGather(const void* sendbuf, void* recvbuf, size_t sendcount,
                              rhDataType_t datatype, int root, rhComm_t comm, rhStream_t stream);

/* On return, recvbuf[i] is sendbuf[rank * recvcount + i] of rank `root`. Only the root uses
 * sendbuf; it may be NULL on other ranks. In place on the root: recvbuf is
 * sendbuf + root * recvcount. */
RH_EXPORT rhResult_t rhScatter(const void* sendbuf, void* recvbuf, size_t recvcount,
                               rhDataType_t datatype, int root, rhComm_t comm, rhStream_t stream);

/* Sends `count` elements to rank `peer`, which receives as many with rhRecv; the n-th send of one
 * rank to another meets the n-th receive there. A send returns when sendbuf may be used again,
 * which may be before the peer has called rhRecv, and may not. Sends and receives that need each
 * other must be in one group. */
RH_EXPORT rhResult_t rhSend(const void* sendbuf, size_t count, rhDataType_t datatype, int peer,
                            rhComm_t comm, rhStream_t stream);
RH_EXPORT rhResult_t rhRecv(void* recvbuf, size_t count, rhDataType_t datatype, int peer,
                            rhComm_t comm, rhStream_t stream);

/* Transfers that progress beside other transfers, collectives and streams of the same communicator.
 * rhIsend and rhIrecv return at once and write a request, which rhRequestTest and rhRequestWait
 * query and rhRequestFree frees. Until the request is done, do not write to a send buffer and do
 * not access a receive buffer.
 *
 *     rhRequest_t request;
 *     rhIrecv(next, count, rhFloat32, rank - 1, 7, comm, &request);
 *     rhAllReduce(grads, grads, n, rhFloat32, rhSum, comm, NULL);
 *     rhRequestWait(request);
 *     rhRequestFree(request);
 *
 * `count` is in elements, `tag` is from 0 to INT_MAX, `peer` may be this rank. A receive matches a
 * message if both source and tag are equal; RH_ANY_SOURCE as `peer` and RH_ANY_TAG as `tag` match
 * all. A message goes to the earliest posted receive that matches it, and a receive takes the
 * earliest sent message that it matches: messages between two ranks with one tag arrive in order.
 * rhSend and rhRecv have no tags and never match these calls.
 *
 * A message may be shorter than the receive (rhRequestGetInfo has its size). If it is longer, the
 * library writes nothing, and the communicator fails on all ranks with rhInternalError; the text
 * names both ranks and sizes. Types are not compared.
 *
 * A send is done when its buffer may be used again: up to 16 KiB (256 to other pods) usually before
 * the peer posts its receive, above that afterwards. A transfer waits without limit for a peer that
 * is alive and has not posted its call. It fails if the communicator fails (death of a rank,
 * rhCommAbort), if the peer has left, if a rank does not respond for RAILHEAD_TIMEOUT_SECONDS, or
 * if a transfer that both ranks have posted makes no progress for as long, also if they cannot
 * connect.
 *
 * Any thread may call them at any time, also during other calls of the communicator, but not inside
 * a group of rhGroupStart (rhInvalidUsage). GPU memory returns rhInvalidArgument. The first
 * transfer of a rank connects to peers; peers need not call anything for that. The calling thread
 * moves the data; a thread of the library does so while no thread calls.
 * rhCommFinalize and rhCommDestroy return rhInvalidUsage while a transfer is not done; rhCommAbort
 * ends transfers. */
#define RH_ANY_SOURCE (-1)
#define RH_ANY_TAG (-1)
RH_EXPORT rhResult_t rhIsend(const void* sendbuf, size_t count, rhDataType_t datatype, int peer,
                             int tag, rhComm_t comm, rhRequest_t* request);
RH_EXPORT rhResult_t rhIrecv(void* recvbuf, size_t count, rhDataType_t datatype, int peer, int tag,
                             rhComm_t comm, rhRequest_t* request);

/* Start and end a group. Inside a group, calls of this thread check their arguments and are
 * recorded. The outermost rhGroupEnd then runs them, all communicators at the same time: for each,
 * its collectives in order, then all its sends and receives at the same time. A call with a wrong
 * argument is not recorded. If this rank's sends and receives to itself do not match, no call of
 * the group starts on this rank. Returns the first failure. */
RH_EXPORT rhResult_t rhGroupStart(void);
RH_EXPORT rhResult_t rhGroupEnd(void);

/* Creates an operator for rhAllReduce, rhReduceScatter(v) and rhReduce of `comm` and `datatype`: it
 * multiplies each rank's values by that rank's *scalar (one element of `datatype`, read during this
 * call), and adds the products. Products are rounded to the type before they are added. `residence`
 * is ignored, and exists for compatibility: the library detects where the scalar is. */
typedef enum RH_INT_ENUM { rhScalarDevice = 0, rhScalarHostImmediate = 1 } rhScalarResidence_t;
RH_EXPORT rhResult_t rhRedOpCreatePreMulSum(rhRedOp_t* op, void* scalar, rhDataType_t datatype,
                                            rhScalarResidence_t residence, rhComm_t comm);
RH_EXPORT rhResult_t rhRedOpDestroy(rhRedOp_t op, rhComm_t comm);

/* Streams. A collective or transfer with a stream returns rhSuccess at once if its arguments are
 * valid. The stream's thread runs it after all earlier calls of the stream. Do not change or free
 * its buffers until then. While a stream has calls of a communicator, other calls of this
 * communicator must use the same stream; otherwise they return rhInvalidUsage. */
RH_EXPORT rhResult_t rhStreamCreate(rhStream_t* stream);
/* Waits until all calls are done. Returns the first failure since the last rhStreamSynchronize.
 * NULL is allowed. */
RH_EXPORT rhResult_t rhStreamSynchronize(rhStream_t stream);
/* Waits as rhStreamSynchronize does, then frees the stream. */
RH_EXPORT rhResult_t rhStreamDestroy(rhStream_t stream);

/* Creates a request, which is done when all calls that are on the stream now are done. Test and
 * wait return rhSuccess, or the first failure of these calls that no rhStreamSynchronize had
 * returned when the request was created. rhRequestTest writes whether the request is done, and does
 * not wait. Free each request, before or after its stream.
 *
 * A request of rhIsend or rhIrecv is done when its transfer is. Test and wait return rhSuccess, or
 * the reason of its failure, with the text at rhGetLastError(NULL). Several threads may call them,
 * several times. A request may outlive its communicator. Free it when it is done; before that,
 * rhRequestFree returns rhInvalidUsage and does nothing. NULL is allowed. */
RH_EXPORT rhResult_t rhStreamRequest(rhStream_t stream, rhRequest_t* request);
RH_EXPORT rhResult_t rhRequestTest(rhRequest_t request, int* done);
RH_EXPORT rhResult_t rhRequestWait(rhRequest_t request);
RH_EXPORT rhResult_t rhRequestFree(rhRequest_t request);

/* A finished transfer: the peer, the tag and the bytes of its message. Set `struct_size` to
 * sizeof(rhRequestInfo_t) before the call; later versions may add fields at the end, as in
 * rhCommInfo_t. rhRequestGetInfo returns rhInvalidUsage if the request is not one of rhIsend or
 * rhIrecv, is not done, or failed. */
typedef struct {
  size_t struct_size;
  int peer;
  int tag;
  size_t bytes;
} rhRequestInfo_t;
RH_EXPORT rhResult_t rhRequestGetInfo(rhRequest_t request, rhRequestInfo_t* info);

/* Transport and state of a communicator. Set `struct_size` to sizeof(rhCommInfo_t) before the call.
 * Later versions may add fields at the end: an older program gets the fields that it has, and a
 * newer one gets zeros in fields that the library lacks. This also applies to rhRailInfo_t. */
typedef struct {
  size_t struct_size;
  char transport[16];             /* "shm", "verbs" or "tcp" */
  int rails;                      /* number of rails in use */
  int degraded;                   /* 1: it got less than requested */
  char degraded_reason[1024];     /* rank and cause; "" if not degraded */
  uint64_t rejected_connections;  /* connections that the rendezvous rejected (rank 0) */
  char unused_memory_reason[512]; /* why ranks of one pod do not use shared memory; "" if they do,
                                   * or if no two ranks share a pod */
} rhCommInfo_t;
RH_EXPORT rhResult_t rhCommGetInfo(rhComm_t comm, rhCommInfo_t* info);

/* Writes which algorithm runs a collective ("all_reduce", "all_to_all", ... as in metrics) of
 * `bytes` (of the larger of a rank's two buffers), and why: a few lines for people with the
 * estimated time of each algorithm, and the measured time of those that calls have tried. The text
 * is truncated to `text_size` bytes. It is equal on all ranks that made the same calls. */
RH_EXPORT rhResult_t rhCommExplain(rhComm_t comm, const char* collective, size_t bytes, char* text,
                                   size_t text_size);

/* A rail and its traffic. Set `struct_size` to sizeof(rhRailInfo_t) before the call. */
typedef struct {
  size_t struct_size;
  int rail;           /* rail number on the node */
  int port;           /* port of the HCA; 0 for TCP */
  int up;             /* 0 while it is down, after a failure or since the start */
  char device[64];    /* HCA, or network interface for TCP, or "memory" */
  char transport[16]; /* "shm", "verbs" or "tcp" */
  uint64_t tx_bytes;  /* payload bytes since the communicator was created */
  uint64_t rx_bytes;
  uint64_t retransmits; /* 0 if the transport does not count them */
  char leaves_by[64];   /* for TCP: another network interface by which bytes leave, since the kernel
                         * routes them there; "" if all leave by `device` */
} rhRailInfo_t;
/* Writes the state of rail `index`, from 0 to rails-1 of rhCommGetInfo. */
RH_EXPORT rhResult_t rhCommRailInfo(rhComm_t comm, int index, rhRailInfo_t* info);

/* Findings of a pre-flight. */
typedef enum RH_INT_ENUM {
  rhFindingOk = 0,
  rhFindingNote = 1, /* not checked: not visible from this pod, or not applicable */
  rhFindingWarn = 2, /* it works, but not as intended */
  rhFindingFail = 3  /* a job would lose a rail, or get less than was allocated */
} rhVerdict_t;
/* Later versions may add fields at the end. Texts are never NULL. */
typedef struct {
  rhVerdict_t verdict;
  const char* check;     /* "port", "rate", "mtu", "gid", "ping", ...: one word */
  int rail;              /* -1: not about a rail */
  const char* device;    /* of the rail: HCA, or network interface for TCP; else "" */
  const char* transport; /* of the rail: "verbs" or "tcp"; else "" */
  const int* ranks;      /* affected ranks, ascending */
  int rank_count;
  const char* where; /* rail and ranks for people, with pods and nodes */
  const char* value; /* the observed value */
  const char* fix;   /* what to do; "" for rhFindingOk */
} rhFinding_t;
/* Receives one finding, which is valid during the call, with all that it points to. It must not
 * throw. */
typedef void (*rhFindingFunction_t)(const rhFinding_t* finding, void* context);

/* Pre-flight: checks the rails before a job uses them. Call it on all ranks that RANK, WORLD_SIZE,
 * MASTER_ADDR and MASTER_PORT describe, instead of or before rhCommInitFromEnv. The ranks connect
 * as for a job, but ranks of one pod use rails too. They check every rail (port, rate, MTU, GID,
 * device node, memory lock limit, flow control, counters), and ping each other over every rail:
 * all pairs up to 64 ranks; beyond, each rank and those at distances that are powers of two. Then
 * the library calls `each` in this thread, on all ranks with the same findings in the same order.
 * Blocks; takes some milliseconds, and 3 s for each pair and rail without an answer. Returns an
 * error if the ranks could not meet or connect at all; rhGetLastError(NULL) has the reason. */
RH_EXPORT rhResult_t rhPreflight(rhFindingFunction_t each, void* context);

#ifdef __cplusplus
}
#endif
/* NOLINTEND(modernize-use-using) */

#endif /* RAILHEAD_RAILHEAD_H_ */
