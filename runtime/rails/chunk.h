// SPDX-License-Identifier: Apache-2.0
//
// Division of a transfer into chunks, which go over different rails. Used by Peer.
#ifndef RAILHEAD_RUNTIME_RAILS_CHUNK_H_
#define RAILHEAD_RUNTIME_RAILS_CHUNK_H_

#include <cstddef>

namespace railhead::rails {

// Returns the chunk size of a transfer in bytes. Short transfers are not divided, since a second
// chunk only adds latency, nor are those of a single rail, where it costs system calls. Long ones
// give each of several rails several chunks, so that a slower rail takes fewer. No chunk exceeds
// `max_payload`, the limit of all rails.
size_t ChunkSize(size_t transfer, size_t rails, size_t max_payload);

}  // namespace railhead::rails

#endif  // RAILHEAD_RUNTIME_RAILS_CHUNK_H_
