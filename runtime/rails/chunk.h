// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_RUNTIME_RAILS_CHUNK_H_
#define RAILHEAD_RUNTIME_RAILS_CHUNK_H_

#include <cstddef>

namespace railhead::rails {

// Into pieces of how many bytes a transfer is cut. Short transfers go whole, since a second piece
// would only add latency; long ones give each rail several pieces, so that a rail that is a little
// slower simply takes fewer; and no piece is longer than `max_payload`, what every rail can take.
size_t ChunkSize(size_t transfer, size_t rails, size_t max_payload);

}  // namespace railhead::rails

#endif  // RAILHEAD_RUNTIME_RAILS_CHUNK_H_
