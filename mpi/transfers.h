// SPDX-License-Identifier: Apache-2.0
//
// MPI's sends and receives by rhIsend and rhIrecv, which match by rank and tag as MPI does. All
// sends are rendezvous above 16 KiB in memory and 256 KiB over rails, as MPI allows.
#ifndef RAILHEAD_MPI_TRANSFERS_H_
#define RAILHEAD_MPI_TRANSFERS_H_

#include <cstddef>

#include "mpi/group.h"
#include "mpi/objects.h"
#include "railhead/railhead.h"

namespace railhead::mpi {

// Source, tag and size of a received message: the content of MPI_Status.
struct Arrival {
  int source = kProcessNull;
  int tag = kAnyTag;
  size_t bytes = 0;
};

// Begin a transfer of `bytes` bytes. `begun` stays null with MPI_PROC_NULL: there is nothing to
// wait for. Otherwise EndTransfer frees it.
Outcome BeginSend(const Group& group, const void* buffer, size_t bytes, int to, int tag,
                  rhRequest_t* begun);
Outcome BeginReceive(const Group& group, void* buffer, size_t bytes, int from, int tag,
                     rhRequest_t* begun);
// Waits for the transfer and frees it, also when it has failed. `arrival` may be null; it is
// unchanged if `begun` is null.
Outcome EndTransfer(rhRequest_t begun, Arrival* arrival);

// As above, with a request for the program, until Wait or Test has ended it.
Outcome Send(Group& group, const void* buffer, size_t bytes, int to, int tag, Request** request);
Outcome Receive(Group& group, void* buffer, size_t bytes, int from, int tag, Request** request);

// Checks destination and tag as BeginSend does.
Outcome CheckDestination(const Group& group, int to, int tag);

// Waits for the transfer and frees `request`, also when it has failed.
Outcome Wait(Request* request, Arrival* arrival);
// As Wait if the transfer is done; otherwise nothing has happened and *done is false.
Outcome Test(Request* request, bool* done, Arrival* arrival);

}  // namespace railhead::mpi

#endif  // RAILHEAD_MPI_TRANSFERS_H_
