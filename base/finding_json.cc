// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "base/finding.h"

namespace railhead {

nlohmann::ordered_json ToJson(const Finding& finding) {
  return {{"severity", std::string(SeverityName(finding.severity))},
          {"check", finding.check},
          {"object", finding.object},
          {"observed", finding.observed},
          {"fix", finding.fix}};
}

}  // namespace railhead
