// SPDX-License-Identifier: Apache-2.0
//
// Collectives of the C API: each function fills in one call.
#include <cstddef>

#include "railhead/railhead.h"
#include "runtime/collectives/collective.h"
#include "runtime/comm/api/collective_call.h"

// NOLINTBEGIN(readability-identifier-naming): these names are the C API.

namespace {

using railhead::collectives::Collective;
using railhead::comm::Start;

}  // namespace

rhResult_t rhAllReduce(const void* sendbuf, void* recvbuf, size_t count, rhDataType_t datatype,
                       rhRedOp_t op, rhComm_t comm, rhStream_t stream) {
  return Start({.name = "rhAllReduce",
                .collective = Collective::kAllReduce,
                .send = sendbuf,
                .receive = recvbuf,
                .count = count,
                .type = datatype,
                .op = op},
               comm, stream);
}

rhResult_t rhAllGather(const void* sendbuf, void* recvbuf, size_t sendcount, rhDataType_t datatype,
                       rhComm_t comm, rhStream_t stream) {
  return Start({.name = "rhAllGather",
                .count_name = "sendcount",
                .collective = Collective::kAllGather,
                .send = sendbuf,
                .receive = recvbuf,
                .count = sendcount,
                .type = datatype},
               comm, stream);
}

rhResult_t rhAllGatherv(const void* sendbuf, void* recvbuf, const size_t* recvcounts,
                        const size_t* displs, rhDataType_t datatype, rhComm_t comm,
                        rhStream_t stream) {
  return Start({.name = "rhAllGatherv",
                .collective = Collective::kAllGather,
                .send = sendbuf,
                .receive = recvbuf,
                .type = datatype,
                .receive_lists = {"recvcounts", recvcounts, "displs", displs}},
               comm, stream);
}

rhResult_t rhReduceScatter(const void* sendbuf, void* recvbuf, size_t recvcount,
                           rhDataType_t datatype, rhRedOp_t op, rhComm_t comm, rhStream_t stream) {
  return Start({.name = "rhReduceScatter",
                .count_name = "recvcount",
                .collective = Collective::kReduceScatter,
                .send = sendbuf,
                .receive = recvbuf,
                .count = recvcount,
                .type = datatype,
                .op = op},
               comm, stream);
}

rhResult_t rhReduceScatterv(const void* sendbuf, void* recvbuf, const size_t* recvcounts,
                            rhDataType_t datatype, rhRedOp_t op, rhComm_t comm, rhStream_t stream) {
  return Start({.name = "rhReduceScatterv",
                .collective = Collective::kReduceScatter,
                .send = sendbuf,
                .receive = recvbuf,
                .type = datatype,
                .op = op,
                .send_lists = {"recvcounts", recvcounts}},
               comm, stream);
}

rhResult_t rhBroadcast(const void* sendbuf, void* recvbuf, size_t count, rhDataType_t datatype,
                       int root, rhComm_t comm, rhStream_t stream) {
  return Start({.name = "rhBroadcast",
                .collective = Collective::kBroadcast,
                .send = sendbuf,
                .receive = recvbuf,
                .count = count,
                .type = datatype,
                .root = root},
               comm, stream);
}

rhResult_t rhReduce(const void* sendbuf, void* recvbuf, size_t count, rhDataType_t datatype,
                    rhRedOp_t op, int root, rhComm_t comm, rhStream_t stream) {
  return Start({.name = "rhReduce",
                .collective = Collective::kReduce,
                .send = sendbuf,
                .receive = recvbuf,
                .count = count,
                .type = datatype,
                .op = op,
                .root = root},
               comm, stream);
}

rhResult_t rhAlltoAll(const void* sendbuf, void* recvbuf, size_t count, rhDataType_t datatype,
                      rhComm_t comm, rhStream_t stream) {
  return Start({.name = "rhAlltoAll",
                .collective = Collective::kAllToAll,
                .send = sendbuf,
                .receive = recvbuf,
                .count = count,
                .type = datatype},
               comm, stream);
}

rhResult_t rhAlltoAllv(const void* sendbuf, const size_t* sendcounts, const size_t* sdispls,
                       void* recvbuf, const size_t* recvcounts, const size_t* rdispls,
                       rhDataType_t datatype, rhComm_t comm, rhStream_t stream) {
  return Start({.name = "rhAlltoAllv",
                .collective = Collective::kAllToAll,
                .send = sendbuf,
                .receive = recvbuf,
                .type = datatype,
                .send_lists = {"sendcounts", sendcounts, "sdispls", sdispls},
                .receive_lists = {"recvcounts", recvcounts, "rdispls", rdispls}},
               comm, stream);
}

rhResult_t rhGather(const void* sendbuf, void* recvbuf, size_t sendcount, rhDataType_t datatype,
                    int root, rhComm_t comm, rhStream_t stream) {
  return Start({.name = "rhGather",
                .count_name = "sendcount",
                .collective = Collective::kGather,
                .send = sendbuf,
                .receive = recvbuf,
                .count = sendcount,
                .type = datatype,
                .root = root},
               comm, stream);
}

rhResult_t rhScatter(const void* sendbuf, void* recvbuf, size_t recvcount, rhDataType_t datatype,
                     int root, rhComm_t comm, rhStream_t stream) {
  return Start({.name = "rhScatter",
                .count_name = "recvcount",
                .collective = Collective::kScatter,
                .send = sendbuf,
                .receive = recvbuf,
                .count = recvcount,
                .type = datatype,
                .root = root},
               comm, stream);
}

rhResult_t rhBarrier(rhComm_t comm, rhStream_t stream) {
  return Start({.name = "rhBarrier", .collective = Collective::kBarrier}, comm, stream);
}

// NOLINTEND(readability-identifier-naming)
