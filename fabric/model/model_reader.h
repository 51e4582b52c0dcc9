// SPDX-License-Identifier: Apache-2.0
//
// Reader of the FabricModel format, a fabric described by people or programs.
#ifndef RAILHEAD_FABRIC_MODEL_MODEL_READER_H_
#define RAILHEAD_FABRIC_MODEL_MODEL_READER_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/yaml/reader.h"
#include "fabric/model/fabric_model.h"

namespace railhead::fabric {

// Reads a FabricModel from YAML or JSON:
//
//   apiVersion: railhead.io/v1alpha1
//   kind: FabricModel
//   metadata: {name: two-spines}
//   spec:
//     topology: rail-optimized           # fat-tree, rail-optimized or dragonfly
//     levels: [spine, leaf]              # 1 to 8, outermost first; not "node"
//     rails: 8                           # of a node, 1 to 64
//     linkGbps: {node: 400, leaf: 3200}  # optional; for "node" and any level
//     globalLinks: [{a: g0, b: g1, gbps: 200}]  # optional, dragonfly only
//     domains:                           # nested once for each level
//     - name: sp00
//       domains:
//       - name: lf000
//         nodes:                         # in the innermost level
//         - {name: n0, gpus: 8, hcas: 8}
//         - {name: n1, gpus: 8, hcas: 8, usedGpus: 2, usedHcas: 2, deadRails: [3],
//            unschedulable: "taint maintenance"}
//         - {name: n2, gpus: 8, hcas: 8, usedGpus: 2, usedRails: [0, 1]}  # or the used rails
//
// InvalidArgument gives place, cause and fix, as in `fabric.yaml:12:
// spec.domains[0].domains[1].nodes[3].usedGpus: ...`, where `source` is the name of the text.
// Errors: ambiguous names, numbers out of range, more in use than exists, unknown fields and
// levels, recursive domains, wrong nesting depth, more than 16 MiB or 131072 nodes.
absl::StatusOr<FabricModel> ParseFabricModel(absl::string_view yaml, absl::string_view source);

// Reads a FabricModel inside another document. Errors are in `reader.status()`.
FabricModel ReadFabricModel(YamlReader& reader, YamlReader::Value root);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_MODEL_MODEL_READER_H_
