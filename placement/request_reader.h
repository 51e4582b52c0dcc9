// SPDX-License-Identifier: Apache-2.0
//
// A gang's request as people write it.
#ifndef RAILHEAD_PLACEMENT_REQUEST_READER_H_
#define RAILHEAD_PLACEMENT_REQUEST_READER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/yaml/reader.h"
#include "placement/request.h"

namespace railhead::placement {

// Reads a PlacementRequest from YAML or JSON, for a fabric with these levels:
//
//   apiVersion: railhead.io/v1alpha1
//   kind: PlacementRequest
//   metadata: {name: job-a}
//   spec:
//     pods: 64                             # 1 to 1000000
//     gpusPerPod: 8                        # 0 to 1024; not both of them 0
//     hcasPerPod: 8                        # 0 to 64
//     requireLevel: spine                  # optional
//     preferLevel: leaf                    # optional
//     sameRails: true                      # optional: not on nodes that give pods other rails
//     parallelism: {tp: 8, pp: 4, dp: 16}  # optional, innermost first; the product is all GPUs
//     pattern: ring                        # optional: ring, tree or alltoall
//
// InvalidArgument says where, what and how to mend it, as in `request.yaml:6: spec.pods: ...`,
// where `source` is what the text is called.
absl::StatusOr<PlacementRequest> ParsePlacementRequest(absl::string_view yaml,
                                                       absl::string_view source,
                                                       const std::vector<std::string>& levels);

// The same for a request that stands inside of another document. What is wrong is `reader`'s to
// tell.
PlacementRequest ReadPlacementRequest(YamlReader& reader, YamlReader::Value root,
                                      const std::vector<std::string>& levels);

}  // namespace railhead::placement

#endif  // RAILHEAD_PLACEMENT_REQUEST_READER_H_
