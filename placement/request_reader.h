// SPDX-License-Identifier: Apache-2.0
//
// Parser of placement requests in YAML or JSON.
#ifndef RAILHEAD_PLACEMENT_REQUEST_READER_H_
#define RAILHEAD_PLACEMENT_REQUEST_READER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/yaml/reader.h"
#include "placement/request.h"

namespace railhead::placement {

// Parses a PlacementRequest from YAML or JSON, for a fabric with these levels:
//
//   apiVersion: railhead.io/v1alpha1
//   kind: PlacementRequest
//   metadata: {name: job-a}
//   spec:
//     pods: 64                             # 1 to 1000000
//     gpusPerPod: 8                        # 0 to 1024; this or hcasPerPod is at least 1
//     hcasPerPod: 8                        # 0 to 64
//     requireLevel: spine                  # optional
//     preferLevel: leaf                    # optional
//     sameRails: true                      # optional: the same rails for all pods
//     parallelism: {tp: 8, pp: 4, dp: 16}  # optional, innermost first; product: all GPUs
//     pattern: ring                        # optional: ring, tree or alltoall
//
// Returns InvalidArgument with position, cause and fix: `request.yaml:6: spec.pods: ...`. `source`
// is the name of the text in messages.
absl::StatusOr<PlacementRequest> ParsePlacementRequest(absl::string_view yaml,
                                                       absl::string_view source,
                                                       const std::vector<std::string>& levels);

// Like ParsePlacementRequest, for a request inside another document. Reports errors to `reader`.
PlacementRequest ReadPlacementRequest(YamlReader& reader, YamlReader::Value root,
                                      const std::vector<std::string>& levels);

}  // namespace railhead::placement

#endif  // RAILHEAD_PLACEMENT_REQUEST_READER_H_
