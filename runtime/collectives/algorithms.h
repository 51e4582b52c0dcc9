// SPDX-License-Identifier: Apache-2.0
//
// Algorithms of the collectives over messages; ways.h lists them. Each does the part of `rank` in
// an operation of that collective, and blocks until it is done. The buffers are in place or apart,
// as in the C API, where nothing else is said; after an error the contents of `receive` are
// undefined.
//
// n is the number of ranks. All ranks get the same bits in every run. 16- and 8-bit floats are
// rounded at every rank that reduces, where nothing else is said. rhAvg divides by n, on the rank
// that adds the last values.
#ifndef RAILHEAD_RUNTIME_COLLECTIVES_ALGORITHMS_H_
#define RAILHEAD_RUNTIME_COLLECTIVES_ALGORITHMS_H_

#include <cstddef>

#include "absl/status/status.h"
#include "runtime/collectives/messenger.h"
#include "runtime/collectives/operation.h"

namespace railhead::collectives {

// All-reduce. All ranks get identical bits.

// On a ring. The values are divided into one part per rank. In the first n-1 steps every rank sends
// a part to the next rank, which adds its own values: then each rank has one finished part. In the
// second n-1 steps the finished parts travel around. Every rank sends and receives 2(n-1)/n of the
// values, the minimum. Parts travel in segments, so that one is added while the next is in flight.
absl::Status RingAllReduce(Messenger& messenger, int rank, const Operation& operation);

// For small messages, in log2(n) steps: in step k every rank exchanges all its values with the rank
// whose number differs in bit k, and both reduce the same two operands; operators are commutative
// bit for bit. If n is not a power of two, the first few pair up before, and get the result
// afterwards.
absl::Status RecursiveDoublingAllReduce(Messenger& messenger, int rank, const Operation& operation);

// In 2 log2(n) steps, moving no more than a ring (R. Rabenseifner, "Optimization of collective
// reduction operations", 2004): in each of the first log2(n) steps a rank exchanges half of its
// remaining values with the rank whose number differs in one bit, until it has one reduced part;
// the same steps in reverse gather the parts. Extra ranks as in recursive doubling.
absl::Status HalvingDoublingAllReduce(Messenger& messenger, int rank, const Operation& operation);

// Along two binary trees at once (P. Sanders, J. Speck, J. L. Traff, "Two-tree algorithms for full
// bandwidth broadcast, reduction and scan", 2009): each half of the values is reduced up one tree
// and broadcast down it, in pipelined segments. An inner rank of one tree is a leaf of the other
// (except one, if n is odd), so all ranks send and receive about the same; latency grows with
// log2(n).
absl::Status DoubleTreeAllReduce(Messenger& messenger, int rank, const Operation& operation);

// In one step, for few ranks and small messages: every rank gets all values and reduces them at
// once, in rank order, so 16- and 8-bit floats are rounded once.
absl::Status DirectAllReduce(Messenger& messenger, int rank, const Operation& operation);

// Broadcast.

// On a ring: every rank forwards what it receives, segment by segment, up to the rank before the
// root.
absl::Status RingBroadcast(Messenger& messenger, int rank, const Operation& operation);

// For small messages, in log2(n) steps along a binomial tree (binomial_place.h).
absl::Status BinomialBroadcast(Messenger& messenger, int rank, const Operation& operation);

// For large messages to many ranks: a scatter and an all-gather (M. Barnett et al.,
// "Interprocessor collective communication library (InterCom)", 1994; R. van de Geijn). The root
// divides its message into one part per rank and scatters the parts along a binomial tree; the
// ranks gather them in log2(n) steps (gather_around.h). Every rank receives about twice the
// message, in 2 log2(n) steps. The root receives nothing.
absl::Status ScatterAllGatherBroadcast(Messenger& messenger, int rank, const Operation& operation);

// Reduce.

// On a ring: the values start at the rank after the root; every rank adds its own and forwards the
// result, segment by segment, up to the root. Values in transit need memory of a few MiB at most on
// each rank.
absl::Status RingReduce(Messenger& messenger, int rank, const Operation& operation);

// For small messages, along a binomial tree.
absl::Status BinomialReduce(Messenger& messenger, int rank, const Operation& operation);

// All-gather.

// On a ring: in each of n-1 steps every rank forwards the part received in the previous step, its
// own part first. Every rank sends and receives (n-1)/n of the result, the minimum.
absl::Status RingAllGather(Messenger& messenger, int rank, const Operation& operation);

// In log2(n) steps, for any number of ranks (J. Bruck et al., "Efficient algorithms for all-to-all
// communications in multiport message-passing systems", 1997): in step k a rank, which has the
// parts of the 2^k ranks from itself, sends them to the rank 2^k before it. Every rank sends and
// receives as much as on a ring, but to distant ranks. Parts that are not consecutive are gathered
// in temporary memory.
absl::Status BruckAllGather(Messenger& messenger, int rank, const Operation& operation);

// Reduce-scatter.

// On a ring: in each of n-1 steps every rank forwards a part, and the next adds its own values, in
// an order such that a part ends at its rank. Every rank sends and receives (n-1)/n of its values,
// the minimum. Parts in transit need memory of a few MiB at most on each rank; the user's other
// values stay unchanged.
absl::Status RingReduceScatter(Messenger& messenger, int rank, const Operation& operation);
// Its maximum segment in bytes; longer parts take several rounds.
inline constexpr size_t kLargestReduceScatterSegment = size_t{256} << 10U;

// In log2(n) steps by recursive halving (R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of
// collective communication operations in MPICH", 2005), for any number of ranks as the mirror image
// of Bruck's all-gather. At first a rank reduces the parts of all ranks from itself. In each step
// it keeps those of 2^k ranks, the largest power of two less than their number, sends the others to
// the rank 2^k after it, which is the first of them, and adds what it receives to its own. Every
// rank sends and receives as much as on a ring. Needs memory for half of the values or, if n is not
// a power of two, for nearly all; and for all values more if parts are not consecutive.
absl::Status RecursiveHalvingReduceScatter(Messenger& messenger, int rank,
                                           const Operation& operation);

// All-to-all; the buffers are apart.

// In n-1 steps: in step s every rank sends to the rank s after it and receives from the rank s
// before it. So no rank receives from many at once, and every byte is sent once.
absl::Status PairwiseAllToAll(Messenger& messenger, int rank, const Operation& operation);

// Small equal blocks in log2(n) steps (Bruck, as above): a block that has to go d ranks further
// takes the steps of d's binary digits, together with all others that take them. Every block is
// sent up to log2(n) times, in fewer messages. Needs temporary memory of twice `send`.
absl::Status BruckAllToAll(Messenger& messenger, int rank, const Operation& operation);

// Gather and scatter.

// By direct messages between the root and each rank. The root's links carry every byte once, the
// minimum; the root's number of messages grows with n.
absl::Status DirectGather(Messenger& messenger, int rank, const Operation& operation);
absl::Status DirectScatter(Messenger& messenger, int rank, const Operation& operation);

// Small messages, along a binomial tree.
absl::Status BinomialGather(Messenger& messenger, int rank, const Operation& operation);
absl::Status BinomialScatter(Messenger& messenger, int rank, const Operation& operation);

}  // namespace railhead::collectives

#endif  // RAILHEAD_RUNTIME_COLLECTIVES_ALGORITHMS_H_
