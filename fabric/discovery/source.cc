// SPDX-License-Identifier: Apache-2.0
#include "fabric/discovery/source.h"

#include <iterator>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "base/document_error.h"
#include "base/json/json_text.h"
#include "fabric/discovery/ibnetdiscover_reader.h"
#include "fabric/discovery/kubernetes_reader.h"
#include "fabric/discovery/lldp_reader.h"
#include "fabric/discovery/observations.h"

namespace railhead::fabric {

absl::StatusOr<Observations> ReadSource(absl::string_view text, absl::string_view source,
                                        const IsHca& is_hca) {
  const absl::string_view begin = absl::StripLeadingAsciiWhitespace(text.substr(0, 4096));
  if (!begin.empty() && begin[0] == '{') {
    // Checked only in this case: in LLDP, switch names are field names.
    const bool kubernetes = absl::StrContains(begin, "\"apiVersion\"");
    const absl::StatusOr<std::vector<JsonValue>> texts = ParseJsonTexts(
        text, source, kubernetes ? KubernetesFieldsNotRead() : std::vector<absl::string_view>());
    if (!texts.ok()) return texts.status();
    if (IsLldp(texts->front())) return ReadLldp(*texts, source);
    if (IsKubernetes(texts->front())) return ReadKubernetes(*texts, source, is_hca);
  } else if (IsIbnetdiscover(text)) {
    return ReadIbnetdiscover(text, source);
  }
  return DocumentError(
      source, 0, "",
      "has an unknown format; give the output of `kubectl get nodes,pods -A -o json`, "
      "`ibnetdiscover`, or `lldpcli -f json show chassis; lldpcli -f json show neighbors details`");
}

void Append(Observations more, Observations& all) {
  const auto move = [](auto& from, auto& to) {
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
  };
  move(more.devices, all.devices);
  move(more.links, all.links);
  move(more.nodes, all.nodes);
  move(more.uses, all.uses);
  move(more.rail_names, all.rail_names);
}

}  // namespace railhead::fabric
