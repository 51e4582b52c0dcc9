/* SPDX-License-Identifier: Apache-2.0
 *
 * Railhead: collectives over all RDMA rails of a pod, over TCP where there is no RDMA.
 *
 * The interface has the shape of NCCL's, so that porting is renaming (nccl -> rh); result codes,
 * data types and operators have NCCL's numbers. Differences: with `stream` NULL a call blocks until
 * it is done, and with a stream of rhStreamCreate it returns at once; rhConfig_t.blocking = 0 is
 * about the start and the end alone; a process has one rank of a communicator.
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
 * environment, which the Railhead operator sets in pods that ask for rdma/hca. `railhead-perf
 * --help-env` lists all variables that the library reads.
 *
 * Errors. Ranks that do not come make the start fail within RAILHEAD_START_TIMEOUT_SECONDS (60).
 * Ranks that stand still make a call fail within RAILHEAD_TIMEOUT_SECONDS (60), a dead process
 * usually at once. A rank that lives and has not called yet is waited for; the others' logs name
 * it. When one rank fails, all ranks' calls fail, with a text that names the rank and the cause.
 * After a failed collective the communicator can only be aborted or destroyed.
 *
 * Threads. One communicator is used by one thread at a time (a second call at the same time returns
 * rhInvalidUsage), except rhCommAbort, rhCommRevoke and the query functions, which any thread may
 * call. Different communicators are independent. A stream counts as the thread of the calls that
 * are made on it. After fork() only the parent may go on using a communicator: the child has lost
 * its connections (not so after vfork, or clone without fork's handlers), so that the parent's
 * death is seen.
 *
 * Memory of GPUs. A buffer of any call may be memory of a CUDA device, whatever the others are.
 * What a call reads must be there when it begins: synchronize the CUDA streams that write it. What
 * it writes is there when it is done. Collectives are done by the CPU: such buffers are copied
 * through as much pinned memory of the host, which the communicator keeps. Only what rhSend sends
 * and rhBroadcast's root (with one rank a pod), more than 16 KiB, from memory that rhCommRegister
 * has made known is read by RDMA adapters where it lies. Once CUDA's driver has failed, calls fail.
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

/* What a call came to. rhGetLastError has the details. */
typedef enum RH_INT_ENUM {
  rhSuccess = 0,
  rhSystemError = 2,     /* the operating system, a device or a policy forbids it */
  rhInternalError = 3,   /* a defect of the library, or ranks that contradict each other */
  rhInvalidArgument = 4, /* an argument or an environment variable is wrong */
  rhInvalidUsage = 5,    /* the call is not allowed now */
  rhRemoteError = 6,     /* another rank, or the way to it, has failed */
  rhInProgress = 7       /* not finished yet; only calls of rhConfig_t.blocking = 0 return it */
} rhResult_t;

/* Element types. The 8-bit floats are those of the OCP specification:
 * e4m3 has no infinity and a largest value of 448, e5m2 is a shortened IEEE half. NCCL has no
 * 16-bit integers. */
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

/* Reduction operators. NCCL has none for bits; they are for integers. */
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

/* A group of ranks, and this process's place in it. */
typedef struct rhComm* rhComm_t;

/* A row of calls that are done in the background, one after the other. */
typedef struct rhStream* rhStream_t;

/* What has to be done before a caller goes on. */
typedef struct rhRequest* rhRequest_t;

/* A piece of memory of each rank of a communicator that they can reach. */
typedef struct rhWindow* rhWindow_t;

/* How a communicator works. Make it with the initializer, and set what is to be set:
 *
 *     rhConfig_t config = RH_CONFIG_INITIALIZER;
 *     config.commName = "tensor_parallel";
 *     config.timeoutSeconds = 300;
 *
 * A field that is left as the initializer made it is unset: it is what the environment says, and
 * for rhCommSplit, rhCommShrink and rhCommGrow what it is in `comm`. A field that is set counts
 * more than the variable that is named beside it, and may have the same values (`railhead-perf
 * --help-env` lists them). The struct and its texts are the caller's, and are read before the call
 * returns.
 *
 * All ranks of a communicator set the same, save blocking, metrics, socketIfname and secretFile;
 * else the start fails on all of them with rhInvalidArgument, and the text names two ranks and what
 * each has set. A value that is not allowed is rhInvalidArgument at once, and nothing has happened.
 *
 * Later versions add fields at the end, and 0 is their unset. So a program may be older or newer
 * than the library; a newer one gets rhInvalidArgument if it sets what the library does not have.
 */
#define RH_CONFIG_UNDEF_INT INT_MIN
#define RH_CONFIG_UNDEF_PTR NULL
#define RH_CONFIG_MAGIC 0x52484331U
typedef struct rhConfig {
  /* The initializer's. */
  size_t size;
  unsigned int magic;
  unsigned int version;
  /* 0: rhCommInitRankConfig and rhCommFinalize do not wait; and rhCommSplit, rhCommShrink and
   * rhCommGrow do not, if it is 0 in `comm` or in what they are given. 1, or unset: all calls do.
   */
  int blocking;
  int timeoutSeconds;      /* RAILHEAD_TIMEOUT_SECONDS */
  int startTimeoutSeconds; /* RAILHEAD_START_TIMEOUT_SECONDS */
  /* 0: its counts are not on the metrics page. 1, or unset: they are, if RAILHEAD_METRICS_PORT says
   * that there is one. */
  int metrics;
  /* A name of up to 64 bytes: in its messages, and the label `comm` of the metrics of its
   * collectives. */
  const char* commName;
  const char* transport;    /* RAILHEAD_TRANSPORT */
  const char* fallback;     /* RAILHEAD_FALLBACK */
  const char* rails;        /* RAILHEAD_RAILS: which RDMA rails, as "0,2" or "0-3" */
  const char* socketIfname; /* RAILHEAD_SOCKET_IFNAME: which interfaces are its TCP rails */
  const char* secretFile;   /* RAILHEAD_SECRET_FILE; "": none */
} rhConfig_t;
#define RH_CONFIG_INITIALIZER                                                               \
  {                                                                                         \
    sizeof(rhConfig_t), RH_CONFIG_MAGIC, RH_VERSION_CODE, RH_CONFIG_UNDEF_INT,              \
        RH_CONFIG_UNDEF_INT, RH_CONFIG_UNDEF_INT, RH_CONFIG_UNDEF_INT, RH_CONFIG_UNDEF_PTR, \
        RH_CONFIG_UNDEF_PTR, RH_CONFIG_UNDEF_PTR, RH_CONFIG_UNDEF_PTR, RH_CONFIG_UNDEF_PTR, \
        RH_CONFIG_UNDEF_PTR                                                                 \
  }

/* Names a group that is about to form: where its ranks meet, and a random key that keeps others
 * out. Plain bytes, to be carried to all ranks by any means. */
#define RH_UNIQUE_ID_BYTES 128
typedef struct {
  char internal[RH_UNIQUE_ID_BYTES];
} rhUniqueId;

/* Writes the library's version, coded as RH_VERSION_CODE. rhInvalidArgument if `version` is NULL.
 */
RH_EXPORT rhResult_t rhGetVersion(int* version);

/* A few words for a result. Never NULL; static, not to be freed. */
RH_EXPORT const char* rhGetErrorString(rhResult_t result);

/* What went wrong last, in full: which rank, pod, rail and device, why, and what to do. With a
 * communicator: in its last failed call. With NULL: in the last call of this thread that failed
 * without a communicator (rhCommInit...). "" if nothing did. The text is the library's and stays
 * valid until the next call that fails (same communicator, or same thread with NULL). Once
 * rhCommGetAsyncError has told of a failure, the text is that failure's; the one before stays where
 * it is. */
RH_EXPORT const char* rhGetLastError(rhComm_t comm);

/* Makes an id for a new group. Call it once, in the process that will be rank 0 (it opens the
 * socket at which the ranks will meet), and give the id to all ranks. The address in it is that of
 * the first of RAILHEAD_SOCKET_IFNAME, or of the first interface that is not loopback and has one
 * that is not link-local (169.254.0.0/16, fe80::/10), if any has. Who has it can join the group
 * (unless there is a RAILHEAD_SECRET_FILE too): send it where only the ranks read it. */
RH_EXPORT rhResult_t rhGetUniqueId(rhUniqueId* id);

/* Joins the group `id` of `nranks` ranks as `rank` (0 to nranks-1, each once). Blocks until all
 * ranks have called it, and writes a communicator that the caller must destroy or abort. On failure
 * *comm is NULL and rhGetLastError(NULL) has the reason. */
RH_EXPORT rhResult_t rhCommInitRank(rhComm_t* comm, int nranks, rhUniqueId id, int rank);

/* The same with a config (NULL: all of it is unset). If that says blocking = 0, returns
 * rhInProgress at once, and *comm is a communicator in progress: rhCommGetAsyncError writes
 * rhInProgress until it is made (rhSuccess), or could not be (the reason is at
 * rhGetLastError(comm); destroy it). Until then rhCommAbort ends the start, and any other call of
 * it returns rhInvalidUsage.
 *
 *     config.blocking = 0;
 *     rhCommInitRankConfig(&comm, nranks, id, rank, &config);
 *     do {
 *       load_data();
 *       rhCommGetAsyncError(comm, &state);
 *     } while (state == rhInProgress); */
RH_EXPORT rhResult_t rhCommInitRankConfig(rhComm_t* comm, int nranks, rhUniqueId id, int rank,
                                          rhConfig_t* config);

/* As rhCommInitRank, for the group that RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT describe. */
RH_EXPORT rhResult_t rhCommInitFromEnv(rhComm_t* comm);

/* Ends the communicator in peace: waits until its calls on a stream are done, all that this rank
 * has sent has arrived, and all other ranks have called this too or rhCommDestroy. Called by all
 * ranks. rhRemoteError if others have not come within RAILHEAD_TIMEOUT_SECONDS or one has failed.
 * With blocking = 0 returns rhInProgress at once, and rhCommGetAsyncError says how it goes.
 * Whatever comes of it, the communicator can then only be asked and destroyed. */
RH_EXPORT rhResult_t rhCommFinalize(rhComm_t comm);

/* Leaves the group and frees the communicator. Call it on all ranks, in any order of communicators:
 * it waits for the others for 0.1 s, and then up to 10 s in the background, so that nobody loses
 * the last bytes of a collective. The end of the process (exit, return from main) waits for that.
 * NULL is allowed. */
RH_EXPORT rhResult_t rhCommDestroy(rhComm_t comm);

/* Ends the communicator on all ranks and frees it. A collective that runs in another thread returns
 * with an error first; what waits on a stream is not begun. No other call on this communicator may
 * be begun any more. NULL is allowed. */
RH_EXPORT rhResult_t rhCommAbort(rhComm_t comm);

/* Ends the calls of the communicator on all ranks and does not free it: those that run, and all
 * that begin later, return rhRemoteError (one that all ranks have begun may still end well). It can
 * then be shrunk, aborted or destroyed. Any thread, also while others are about to begin a call,
 * which rhCommAbort must not meet. `revoke_flags` must be 0. (NCCL's ncclCommRevoke.) */
RH_EXPORT rhResult_t rhCommRevoke(rhComm_t comm, int revoke_flags);

/* A communicator of those ranks of `comm` that give the same `color` (not negative), in the order
 * of their `key`s, and of their old ranks where keys are equal. Called by all ranks of `comm`; who
 * gives RH_SPLIT_NOCOLOR gets NULL. Blocks, and leaves `comm` as it is. `config` may be NULL, here
 * and below. Where blocking is 0 (here and below), returns rhInProgress at once: *newcomm is a
 * communicator in progress, as with rhCommInitRankConfig, and so is `comm` meanwhile, which can be
 * aborted and asked rhCommGetAsyncError alone. */
#define RH_SPLIT_NOCOLOR (-1)
RH_EXPORT rhResult_t rhCommSplit(rhComm_t comm, int color, int key, rhComm_t* newcomm,
                                 rhConfig_t* config);

/* A communicator of the ranks of `comm` without `exclude_count` of them, in their old order. Called
 * by all that are left, with the same list; `comm` may have failed before, and that is what this is
 * for: training goes on without a lost rank. No call of `comm` may be unfinished. Fails at once
 * when one that is left dies meanwhile. Abort or destroy `comm` afterwards. */
RH_EXPORT rhResult_t rhCommShrink(rhComm_t comm, const int* exclude_ranks, int exclude_count,
                                  rhComm_t* newcomm, rhConfig_t* config);

/* A communicator of the ranks of `comm` and new ones, `nranks` in all. Ranks of `comm` keep their
 * numbers and pass rank -1; new ones pass `comm` NULL, and a number from the old count up. All pass
 * the same `id`, which the process of rank 0 has made, and new ones set in `config` what `comm` was
 * made with. Abort or destroy `comm` afterwards. */
RH_EXPORT rhResult_t rhCommGrow(rhComm_t comm, int nranks, rhUniqueId id, int rank,
                                rhComm_t* newcomm, rhConfig_t* config);

/* Any thread, without waiting: writes rhSuccess, rhInProgress while it is not made, while calls on
 * a stream are not finished or while rhCommFinalize goes on, or why the communicator has failed, be
 * it on another rank. */
RH_EXPORT rhResult_t rhCommGetAsyncError(rhComm_t comm, rhResult_t* async_error);

/* Number of ranks, and this process's rank. */
RH_EXPORT rhResult_t rhCommCount(rhComm_t comm, int* count);
RH_EXPORT rhResult_t rhCommUserRank(rhComm_t comm, int* rank);

/* Memory for buffers that need not be copied for other ranks. rhMemAlloc writes to *ptr where
 * `size` bytes of zeros begin, aligned to a page; rhSystemError when `size` is more than half of
 * what this process can still get. rhMemFree takes what rhMemAlloc wrote, or NULL; windows and
 * rhCommRegister keep the memory until they are done with it. Any thread; reasons are at
 * rhGetLastError(NULL). */
RH_EXPORT rhResult_t rhMemAlloc(void** ptr, size_t size);
RH_EXPORT rhResult_t rhMemFree(void* ptr);

/* Makes a window of `size` bytes at `buff` on each rank of `comm`, all from one call of rhMemAlloc
 * each; ranks may differ in both. Called by all ranks, and blocks. From then on a collective of
 * more than 4 KiB works on its buffers where they lie, in 0.4 to 0.7 of the time as measured
 * (docs/bench-allreduce.md), if those of all ranks are in windows; else it does what it always
 * does. Only ranks of one pod can reach each other's memory; elsewhere windows only do what
 * rhCommRegister does. A rank of the communicator can write to what is in a window: give it nothing
 * else. `win_flags` must be 0. On rhInvalidArgument, on all ranks, the communicator is as good as
 * before. (NCCL's ncclCommWindowRegister.) */
RH_EXPORT rhResult_t rhCommWindowRegister(rhComm_t comm, void* buff, size_t size, rhWindow_t* win,
                                          int win_flags);

/* Called by all ranks, between the same collectives. Destroying the communicator does it too. */
RH_EXPORT rhResult_t rhCommWindowDeregister(rhComm_t comm, rhWindow_t win);

/* Makes `size` bytes at `buff` known to the network adapters that `comm` uses: over RDMA, messages
 * of more than 16 KiB are then sent from there, and not copied first. Any memory of this process
 * will do, and it may be made known several times. It must stay mapped until it is deregistered,
 * else its old contents may be sent. That of a GPU is registered at once, as a dma-buf or else by
 * nvidia-peermem; where neither works it is copied through the host, and the communicator is
 * degraded meanwhile, with the reason (rhCommGetInfo). It must not be freed before. Other memory is
 * pinned when it is first sent from; where that fails (RAILHEAD_LOG=info says why), for managed
 * memory of CUDA, and over other networks, everything is done as without it. A window does the same
 * for this rank. Concerns this rank alone; any thread, at any time. (NCCL's ncclCommRegister.) */
RH_EXPORT rhResult_t rhCommRegister(rhComm_t comm, void* buff, size_t size, void** handle);

/* Takes what rhCommRegister wrote to *handle. Not while a call that uses the memory is unfinished.
 * Destroying the communicator does it too. */
RH_EXPORT rhResult_t rhCommDeregister(rhComm_t comm, void* handle);

/* Collectives. All ranks call the same ones in the same order, with the same counts, type, operator
 * and root (only rhSend and rhRecv concern two ranks alone). Counts are in elements; a count of 0
 * does nothing, with whatever buffers. Buffers are aligned for their type and stay the caller's;
 * they do not overlap, or are in place: sendbuf is recvbuf or, where one of them has a part for
 * each rank, the smaller one is this rank's part of the larger one. A send buffer that is not in
 * place is not written to.
 *
 * Arithmetic. Integers wrap; an integer average is cut towards zero. 16- and 8-bit floats are added
 * in fp32 and rounded once in shared memory, and at every rank on the way over rails. What
 * overflows is infinity from there on, and in e4m3, which has none, 448: over rails 448 + 448 - 448
 * may come to 0. rhMin and rhMax give NaN where any input is NaN. The same inputs give the same
 * bits every time in shared memory, and over rails where RAILHEAD_ALGO lays the algorithm down.
 * Otherwise the fastest is found by trying, and a later call may sum floats in another order (on
 * all ranks alike).
 *
 * Results. rhInvalidArgument for an argument that is wrong (and nothing has happened: the
 * communicator is as good as before), rhInvalidUsage while another thread uses the communicator;
 * any other failure is final, and rhGetLastError names the collective, its number and the cause. */

/* On return, recvbuf[i] is the reduction over all ranks of sendbuf[i], with the same bits on all
 * ranks. Both buffers hold `count` elements. */
RH_EXPORT rhResult_t rhAllReduce(const void* sendbuf, void* recvbuf, size_t count,
                                 rhDataType_t datatype, rhRedOp_t op, rhComm_t comm,
                                 rhStream_t stream);

/* On return, recvbuf[r * sendcount + i] is sendbuf[i] of rank r. sendbuf holds `sendcount`
 * elements, recvbuf as many for each rank. In place: sendbuf is recvbuf + rank * sendcount. */
RH_EXPORT rhResult_t rhAllGather(const void* sendbuf, void* recvbuf, size_t sendcount,
                                 rhDataType_t datatype, rhComm_t comm, rhStream_t stream);

/* On return, recvbuf[i] is the reduction over all ranks of sendbuf[rank * recvcount + i]. recvbuf
 * holds `recvcount` elements, sendbuf as many for each rank. In place: recvbuf is
 * sendbuf + rank * recvcount, and the rest of sendbuf stays as it is. */
RH_EXPORT rhResult_t rhReduceScatter(const void* sendbuf, void* recvbuf, size_t recvcount,
                                     rhDataType_t datatype, rhRedOp_t op, rhComm_t comm,
                                     rhStream_t stream);

/* On return, recvbuf[i] is sendbuf[i] of rank `root`. Both hold `count` elements; sendbuf is used
 * on the root alone, and may be NULL elsewhere. A rank may return before others have their copies.
 */
RH_EXPORT rhResult_t rhBroadcast(const void* sendbuf, void* recvbuf, size_t count,
                                 rhDataType_t datatype, int root, rhComm_t comm, rhStream_t stream);

/* On return on rank `root`, recvbuf[i] is the reduction over all ranks of sendbuf[i]. Both hold
 * `count` elements; recvbuf is used on the root alone, and may be NULL elsewhere. A rank may return
 * before the root has its result. */
RH_EXPORT rhResult_t rhReduce(const void* sendbuf, void* recvbuf, size_t count,
                              rhDataType_t datatype, rhRedOp_t op, int root, rhComm_t comm,
                              rhStream_t stream);

/* Returns when all ranks have called it. (NCCL has none.) */
RH_EXPORT rhResult_t rhBarrier(rhComm_t comm, rhStream_t stream);

/* rhAllGather of parts that differ: recvbuf[displs[r] + i] is sendbuf[i] of rank r, for i below
 * recvcounts[r]. Counts and displacements are in elements, the same on all ranks, one for each
 * rank; `displs` NULL: parts follow each other. sendbuf holds recvcounts[rank] elements. In place:
 * sendbuf is recvbuf + displs[rank]. */
RH_EXPORT rhResult_t rhAllGatherv(const void* sendbuf, void* recvbuf, const size_t* recvcounts,
                                  const size_t* displs, rhDataType_t datatype, rhComm_t comm,
                                  rhStream_t stream);

/* rhReduceScatter of parts that differ, and that follow each other: rank r gets recvcounts[r]
 * elements. In place: recvbuf is this rank's part of sendbuf. */
RH_EXPORT rhResult_t rhReduceScatterv(const void* sendbuf, void* recvbuf, const size_t* recvcounts,
                                      rhDataType_t datatype, rhRedOp_t op, rhComm_t comm,
                                      rhStream_t stream);

/* On return, recvbuf[r * count + i] is sendbuf[rank * count + i] of rank r. Both hold `count`
 * elements for each rank. In place takes as much memory again. */
RH_EXPORT rhResult_t rhAlltoAll(const void* sendbuf, void* recvbuf, size_t count,
                                rhDataType_t datatype, rhComm_t comm, rhStream_t stream);

/* rhAlltoAll of parts that differ: sendcounts[r] elements from sendbuf + sdispls[r] go to rank r;
 * recvcounts[r] from rank r come to recvbuf + rdispls[r]. What one rank sends to another must be
 * what the other expects of it. Displacements may be NULL, as above. Not in place. */
RH_EXPORT rhResult_t rhAlltoAllv(const void* sendbuf, const size_t* sendcounts,
                                 const size_t* sdispls, void* recvbuf, const size_t* recvcounts,
                                 const size_t* rdispls, rhDataType_t datatype, rhComm_t comm,
                                 rhStream_t stream);

/* On return on rank `root`, recvbuf[r * sendcount + i] is sendbuf[i] of rank r. recvbuf is used on
 * the root alone, and may be NULL elsewhere. In place on the root: sendbuf is
 * recvbuf + root * sendcount. */
RH_EXPORT rhResult_t rhGather(const void* sendbuf, void* recvbuf, size_t sendcount,
                              rhDataType_t datatype, int root, rhComm_t comm, rhStream_t stream);

/* On return, recvbuf[i] is sendbuf[rank * recvcount + i] of rank `root`. sendbuf is used on the
 * root alone, and may be NULL elsewhere. In place on the root: recvbuf is sendbuf + root *
 * recvcount. */
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

/* Between the two, calls of this thread only take notes; arguments are checked at once. The last
 * rhGroupEnd of nested groups then does everything, for all communicators at the same time: first
 * its collectives in their order, then all its sends and receives at the same time. If those of a
 * rank to itself do not fit its receives, none of the communicator's is begun. It returns the first
 * failure. */
RH_EXPORT rhResult_t rhGroupStart(void);
RH_EXPORT rhResult_t rhGroupEnd(void);

/* Makes an operator for rhAllReduce, rhReduceScatter(v) and rhReduce of `comm` and `datatype`: the
 * sum of what each rank's values are when multiplied by that rank's *scalar (one element of
 * `datatype`, read now). Products are rounded to the type before they are added. `residence` is
 * kept for the shape of the call: where the scalar is, is seen. */
typedef enum RH_INT_ENUM { rhScalarDevice = 0, rhScalarHostImmediate = 1 } rhScalarResidence_t;
RH_EXPORT rhResult_t rhRedOpCreatePreMulSum(rhRedOp_t* op, void* scalar, rhDataType_t datatype,
                                            rhScalarResidence_t residence, rhComm_t comm);
RH_EXPORT rhResult_t rhRedOpDestroy(rhRedOp_t op, rhComm_t comm);

/* Streams. A collective or transfer with a stream returns rhSuccess at once if its arguments are
 * right, and is done by the stream's thread after all earlier ones of the stream. Its buffers must
 * stay as they are until then. While calls of a communicator are on a stream, other calls of this
 * communicator must be on the same stream; they return rhInvalidUsage else. */
RH_EXPORT rhResult_t rhStreamCreate(rhStream_t* stream);
/* Waits until all calls are done; returns the first failure since the last time. NULL is
 * allowed. */
RH_EXPORT rhResult_t rhStreamSynchronize(rhStream_t stream);
/* The same, and frees the stream. */
RH_EXPORT rhResult_t rhStreamDestroy(rhStream_t stream);

/* A request is done when all calls are done that are on the stream now. Test and wait return
 * rhSuccess, or the first failure up to then that no rhStreamSynchronize had returned when it was
 * made; rhRequestTest writes whether it is done, and does not wait. A request must be freed, before
 * or after its stream. */
RH_EXPORT rhResult_t rhStreamRequest(rhStream_t stream, rhRequest_t* request);
RH_EXPORT rhResult_t rhRequestTest(rhRequest_t request, int* done);
RH_EXPORT rhResult_t rhRequestWait(rhRequest_t request);
RH_EXPORT rhResult_t rhRequestFree(rhRequest_t request);

/* What a communicator came to run on. Set `struct_size` to sizeof(rhCommInfo_t) before the call.
 * Later versions may add fields at the end: an older program gets what it knows, and a newer one
 * zeros in what the library does not know. That holds for rhRailInfo_t, too. */
typedef struct {
  size_t struct_size;
  char transport[16];             /* "shm", "verbs" or "tcp" */
  int rails;                      /* how many rails it uses */
  int degraded;                   /* 1: it got less than was asked for */
  char degraded_reason[1024];     /* which rank, and why; "" if not degraded */
  uint64_t rejected_connections;  /* strangers that the rendezvous turned away (rank 0) */
  char unused_memory_reason[512]; /* why ranks of one pod do not use its memory among themselves,
                                   * though they could; "" if they do, or there are none */
} rhCommInfo_t;
RH_EXPORT rhResult_t rhCommGetInfo(rhComm_t comm, rhCommInfo_t* info);

/* Writes why which algorithm does a collective ("all_reduce", "all_to_all", ... as in metrics) of
 * so many bytes (of the larger of a rank's two buffers), with what each was estimated to take, and
 * took where calls have tried it: a few lines for people, cut at `text_size`. The same on all ranks
 * that have done the same calls. */
RH_EXPORT rhResult_t rhCommExplain(rhComm_t comm, const char* collective, size_t bytes, char* text,
                                   size_t text_size);

/* One rail and what has crossed it. Set `struct_size` to sizeof(rhRailInfo_t) before the call. */
typedef struct {
  size_t struct_size;
  int rail;           /* its number on the node */
  int port;           /* of the HCA; 0 for TCP */
  int up;             /* 0 after it has failed */
  char device[64];    /* HCA, or network interface for TCP, or "memory" */
  char transport[16]; /* "shm", "verbs" or "tcp" */
  uint64_t tx_bytes;  /* payload bytes, since the communicator was made */
  uint64_t rx_bytes;
  uint64_t retransmits; /* where the transport can tell */
} rhRailInfo_t;
/* `index` is from 0 to rails-1 of rhCommGetInfo. */
RH_EXPORT rhResult_t rhCommRailInfo(rhComm_t comm, int index, rhRailInfo_t* info);

/* What a pre-flight finds. */
typedef enum RH_INT_ENUM {
  rhFindingOk = 0,
  rhFindingNote = 1, /* not looked at: it cannot be seen from here, or does not apply */
  rhFindingWarn = 2, /* it works, but not as it should */
  rhFindingFail = 3  /* a job would lose a rail by it, or not get what it was given */
} rhVerdict_t;
/* Later versions may add fields at the end. Texts are never NULL. */
typedef struct {
  rhVerdict_t verdict;
  const char* check;     /* "port", "rate", "mtu", "gid", "ping", ...: one word */
  int rail;              /* -1: not about a rail */
  const char* device;    /* of the rail: HCA, or network interface for TCP; else "" */
  const char* transport; /* of the rail: "verbs" or "tcp"; else "" */
  const int* ranks;      /* which it is about, ascending */
  int rank_count;
  const char* where; /* rail and ranks for people, with pods and nodes */
  const char* value; /* what was seen */
  const char* fix;   /* what to do; "" if nothing is to be done */
} rhFinding_t;
/* The finding and what it points to are valid during the call. It must not throw. */
typedef void (*rhFindingFunction_t)(const rhFinding_t* finding, void* context);

/* Pre-flight: whether what a job would run on is as it should be. Called by all ranks that RANK,
 * WORLD_SIZE, MASTER_ADDR and MASTER_PORT describe, in place of or before rhCommInitFromEnv. They
 * connect as a job does, except that ranks of one pod use rails too; look at every rail (port,
 * rate, MTU, GID, device node, memory that may be pinned, flow control, counters); and ask each
 * other over every rail, each pair by itself, up to 64 ranks all pairs, else those of each rank
 * that are a power of two away. Then `each` is called in this thread, on all ranks with the same
 * findings in the same order. Blocks; needs some milliseconds, and 3 s for a pair and rail that
 * does not answer. An error means that the ranks could not meet or connect at all;
 * rhGetLastError(NULL) has it. */
RH_EXPORT rhResult_t rhPreflight(rhFindingFunction_t each, void* context);

#ifdef __cplusplus
}
#endif
/* NOLINTEND(modernize-use-using) */

#endif /* RAILHEAD_RAILHEAD_H_ */
