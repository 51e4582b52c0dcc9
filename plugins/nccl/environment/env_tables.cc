// SPDX-License-Identifier: Apache-2.0
//
// Exported tables of NCCL's environment interface.
#include <dlfcn.h>

#include <climits>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "plugins/nccl/abi/env.h"
#include "plugins/nccl/environment/rail_facts.h"
#include "plugins/nccl/environment/variables.h"
#include "plugins/nccl/name.h"
#include "runtime/base/caught.h"
#include "runtime/base/log.h"
#include "runtime/config/env.h"
#include "runtime/net/address.h"

namespace railhead::nccl {
namespace {

// What NCCL gets, read once per process: NCCL may keep a text until the process ends.
struct Answers {
  std::map<std::string, Variable, std::less<>> variables;  // by name
  LogLevel log_level = LogLevel::kWarn;
  absl::Status trouble;  // why rails or settings are unknown
};

// The absolute path of this library; "" if it is unknown.
std::string OwnLibrary() {
  Dl_info info = {};
  static const char here = 0;
  if (::dladdr(&here, &info) == 0 || info.dli_fname == nullptr) return "";
  const std::unique_ptr<char, decltype(&std::free)> path(::realpath(info.dli_fname, nullptr),
                                                         std::free);
  return path == nullptr ? "" : path.get();
}

Answers ReadAnswers() {
  Answers answers;
  config::Settings settings;
  answers.trouble = config::ReadSettings(config::ProcessEnvironment, settings);
  answers.log_level = settings.log_level;
  if (!answers.trouble.ok()) return answers;
  RailFacts facts;
  if (absl::StatusOr<RailFacts> found = ReadRailFacts("/", settings, net::OwnAddresses());
      found.ok()) {
    facts = *std::move(found);
  } else {
    answers.trouble = found.status();
  }
  facts.library = OwnLibrary();
  for (Variable& variable : VariablesFor(facts, settings, config::ProcessEnvironment)) {
    answers.variables.try_emplace(variable.name, std::move(variable));
  }
  return answers;
}

const Answers& TheAnswers() {
  static const auto* const answers = new Answers(Caught(ReadAnswers, [](const absl::Status& why) {
    Answers none;
    none.trouble = why;
    return none;
  }));
  return *answers;
}

// Version 1 has no logger of NCCL.
void LogToStderr(const Answers& answers) {
  const Logger log(answers.log_level, "NCCL environment");
  if (!answers.trouble.ok()) {
    log.Write(absl::IsNotFound(answers.trouble) ? LogLevel::kInfo : LogLevel::kWarn,
              answers.trouble.message());
  }
  for (const auto& [name, variable] : answers.variables) {
    log.Info(absl::StrCat(name, "=", variable.value, " (", variable.reason, ")"));
  }
}

void LogToNccl(const Answers& answers, abi::LogFunction log) {
  if (!answers.trouble.ok()) {
    log(absl::IsNotFound(answers.trouble) ? abi::kInfo : abi::kWarn, abi::kEnv, __FILE__, __LINE__,
        "ENV/Railhead: %s", std::string(answers.trouble.message()).c_str());
  }
  for (const auto& [name, variable] : answers.variables) {
    log(abi::kInfo, abi::kEnv, __FILE__, __LINE__, "ENV/Railhead: %s=%s (%s)", name.c_str(),
        variable.value.c_str(), variable.reason.c_str());
  }
}

abi::Result InitV1(uint8_t /*major*/, uint8_t /*minor*/, uint8_t /*patch*/,
                   const char* /*suffix*/) {
  Caught([] { LogToStderr(TheAnswers()); }, [](const absl::Status&) {});
  return abi::kSuccess;
}

abi::Result InitV2(uint8_t major, uint8_t minor, uint8_t patch, const char* suffix,
                   abi::LogFunction log) {
  if (log == nullptr) return InitV1(major, minor, patch, suffix);
  Caught([log] { LogToNccl(TheAnswers(), log); }, [](const absl::Status&) {});
  return abi::kSuccess;
}

abi::Result FinalizeEnv() { return abi::kSuccess; }

// It must not log: NCCL may call it while it logs itself.
const char* GetEnv(const char* name) {
  if (name == nullptr) return nullptr;
  if (const char* const own = std::getenv(name); own != nullptr) return own;
  const auto& variables = TheAnswers().variables;
  const auto found = variables.find(absl::string_view(name));
  return found == variables.end() ? nullptr : found->second.value.c_str();
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): these names are NCCL's.
#define RAILHEAD_EXPORT_ENV extern "C" __attribute__((visibility("default"))) constinit const

RAILHEAD_EXPORT_ENV abi::EnvV1 ncclEnvPlugin_v1 = {
    .name = kName, .init = InitV1, .finalize = FinalizeEnv, .get_env = GetEnv};
RAILHEAD_EXPORT_ENV abi::EnvV2 ncclEnvPlugin_v2 = {
    .name = kName, .init = InitV2, .finalize = FinalizeEnv, .get_env = GetEnv};
// NOLINTEND(readability-identifier-naming)

}  // namespace railhead::nccl
