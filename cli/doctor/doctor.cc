// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor/doctor.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/document_error.h"
#include "base/printable_text.h"
#include "cli/doctor/collect.h"
#include "cli/doctor/diagnose.h"
#include "cli/doctor/print.h"
#include "cli/output/diagnosis.h"

namespace railhead::cli::doctor {

absl::StatusOr<Scope> ParseScope(const std::vector<std::string>& words, const std::string& space) {
  constexpr absl::string_view kAllowed = "cluster, node NAME or job NAMESPACE/NAME";
  if (words.empty()) return Scope{};
  const std::string& what = words[0];
  if (what != "cluster" && what != "node" && what != "job") {
    const std::string nearest = NearestText(what, {"cluster", "node", "job"});
    return absl::InvalidArgumentError(
        absl::StrCat(QuotedText(what), " is not one of ", kAllowed,
                     nearest.empty() ? "" : absl::StrCat("; did you mean ", nearest, "?")));
  }
  const size_t wanted = what == "cluster" ? 1 : 2;
  if (words.size() != wanted || words.back().empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, words.size() < wanted ? " needs a name" : " takes no further arguments",
                     "; give ", kAllowed));
  }
  if (what == "cluster") return Scope{};
  if (what == "node") return Scope{Scope::Kind::kNode, "", words[1]};
  const size_t slash = words[1].find('/');
  Scope job = {Scope::Kind::kJob, space, words[1]};
  if (slash != std::string::npos) {
    job.space = words[1].substr(0, slash);
    job.name = words[1].substr(slash + 1);
  }
  if (job.space.empty() || job.name.empty()) {
    return absl::InvalidArgumentError("a job needs its namespace: job NAMESPACE/NAME, or -n");
  }
  return job;
}

int RunDoctor(const DoctorOptions& options, kube::Api& api, const std::function<absl::Time()>& now,
              std::ostream& out, std::ostream& err) {
  Evidence evidence = Collect(api, options.scope, now, options.version);
  if (evidence.unreachable.empty()) {
    absl::StatusOr<Evidence> narrowed = Narrow(std::move(evidence), options.scope);
    if (!narrowed.ok()) {
      err << "railhead doctor: " << PrintableText(narrowed.status().message()) << "\n";
      return kFailed;
    }
    evidence = *std::move(narrowed);
  }
  const Diagnosis diagnosis = Diagnose(evidence, options.scope);
  out << (options.json ? JsonText(diagnosis, options.scope) : Text(diagnosis, options.colours));
  out.flush();
  if (!out) {
    err << "railhead doctor: cannot write the output\n";
    return kFailed;
  }
  return ExitCodeOf(diagnosis.findings);
}

}  // namespace railhead::cli::doctor
