// SPDX-License-Identifier: Apache-2.0
//
// The chart's schema of a RailProfile, and its shipped profiles, beside the parser and its table:
// what one accepts the other must.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "kube/json.h"
#include "kube/yaml.h"
#include "operator/profiles/profile.h"
#include "operator/profiles/profile_environment.h"
#include "operator/profiles/profile_match.h"
#include "operator/profiles/profile_set.h"
#include "operator/profiles/profile_settings.h"

namespace railhead::op {
namespace {

using kube::Json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Kind = ProfileSetting::Kind;

constexpr char kChart[] = RAILHEAD_SOURCE_DIR "/charts/railhead/";

// The schema of spec. The template is YAML but for the lines with Helm's braces.
Json SpecSchema() {
  std::ifstream file(std::string(kChart) + "templates/railprofile-crd.yaml");
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  text.erase(0, text.find("apiVersion:"));
  std::vector<std::string> lines = absl::StrSplit(text, '\n');
  std::erase_if(lines, [](const std::string& line) { return absl::StrContains(line, "{{"); });
  const absl::StatusOr<std::vector<Json>> documents = kube::ParseYaml(absl::StrJoin(lines, "\n"));
  EXPECT_TRUE(documents.ok()) << documents.status();
  if (!documents.ok() || documents->size() != 1) return {};
  return (*documents)[0]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
}

TEST(ProfileSchemaTest, HasTheFieldsOfTheTableWithTheSameBounds) {
  const Json schema = SpecSchema();
  size_t fields = 0;
  for (const char* section : {"nccl", "ucx", "gloo", "railhead"}) {
    fields += schema["properties"][section]["properties"].size();
  }
  EXPECT_EQ(fields, ProfileSettings().size());
  for (const ProfileSetting& setting : ProfileSettings()) {
    SCOPED_TRACE(setting.Name());
    const Json field =
        schema["properties"][setting.section]["properties"].value(setting.field, Json::object());
    EXPECT_THAT(field.value("description", ""), HasSubstr(absl::StrCat(setting.variable, ".")));
    switch (setting.kind) {
      case Kind::kSwitch:
        EXPECT_EQ(field["type"], "boolean");
        break;
      case Kind::kInteger:
        EXPECT_EQ(field["type"], "integer");
        EXPECT_EQ(field["minimum"], setting.min);
        EXPECT_EQ(field["maximum"], setting.max);
        break;
      case Kind::kWord: {
        EXPECT_EQ(field["type"], "string");
        std::vector<std::string> words;
        for (const absl::string_view word : absl::StrSplit(setting.words, '|')) {
          words.emplace_back(word.substr(0, word.find('=')));
        }
        EXPECT_EQ(field["enum"], Json(words));
        break;
      }
      default:
        EXPECT_EQ(field["type"], "string");
        EXPECT_EQ(field.count("pattern"), 1U);
        EXPECT_EQ(field.count("maxLength"), 1U);
    }
  }
}

TEST(ProfileSchemaTest, RefusesInTheFreeVariablesWhatTheParserRefuses) {
  std::string rules;
  const Json schema = SpecSchema();
  for (const Json& rule : schema["properties"]["env"]["x-kubernetes-validations"]) {
    absl::StrAppend(&rules, rule.value("rule", ""));
  }
  for (const ProfileSetting& setting : ProfileSettings()) {
    EXPECT_EQ(absl::StrContains(rules, absl::StrCat("'", setting.variable, "'")),
              !setting.also_in_env)
        << setting.Name();
  }
  for (const char* name :
       {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "RAILHEAD_JOB", "RAILHEAD_POD",
        "RAILHEAD_NODE", "RAILHEAD_NOT_DONE", "RAILHEAD_METRICS_PORT", "NCCL_IB_HCA",
        "RAILHEAD_FALLBACK", "RAILHEAD_REQUIRE_RDMA", "IB_GID_INDEX"}) {
    EXPECT_THAT(rules, HasSubstr(absl::StrCat("'", name, "'")));
  }
}

TEST(ProfileSchemaTest, TheParserKnowsEveryFieldOfTheSpec) {
  const Json schema = SpecSchema();
  Json profile = Json::parse(R"({"apiVersion": "railhead.io/v1alpha1", "kind": "RailProfile",
                                 "metadata": {"name": "a"}})");
  for (const auto& [name, rule] : schema["properties"].items()) profile["spec"][name] = nullptr;
  profile["spec"]["namespaceSelector"] = {{"matchLabels", {{"a", "b"}}}};
  for (const Json& fabric : schema["properties"]["fabric"]["enum"]) {
    profile["spec"]["fabric"] = fabric;
    const absl::StatusOr<RailProfile> parsed = ParseRailProfile(profile);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(FabricName(parsed->fabric), fabric.get<std::string>());
  }
  for (const Json& word : schema["properties"]["requireRDMA"]["enum"]) {
    profile["spec"]["requireRDMA"] = word;
    profile["spec"]["fabric"] = "InfiniBand";
    EXPECT_TRUE(ParseRailProfile(profile).ok()) << word;
  }
}

TEST(ShippedProfilesTest, AreForTheNamespacesThatAskForThemByName) {
  const absl::StatusOr<ProfileSet> set = LoadProfileSet(std::string(kChart) + "profiles");
  ASSERT_TRUE(set.ok()) << set.status();
  std::vector<std::string> names;
  for (const RailProfile& profile : set->profiles) {
    SCOPED_TRACE(profile.name);
    names.push_back(profile.name);
    EXPECT_TRUE(std::filesystem::exists(absl::StrCat(kChart, "profiles/", profile.name, ".yaml")));
    const ProfileChoice choice = ChooseProfile(
        set->profiles,
        {{"kubernetes.io/metadata.name", "train"}, {"railhead.io/profile", profile.name}}, {});
    ASSERT_NE(choice.profile, nullptr) << choice.conflicting.size();
    EXPECT_EQ(choice.profile->name, profile.name);
    EXPECT_THAT(EnvironmentOf(profile, {}).warnings, IsEmpty());
  }
  EXPECT_THAT(names, ElementsAre("dgx-a100-infiniband", "dgx-h100-infiniband", "roce-v2-lossless",
                                 "tcp-only"));
  EXPECT_EQ(ChooseProfile(set->profiles, {{"kubernetes.io/metadata.name", "train"}}, {}).profile,
            nullptr);
}

}  // namespace
}  // namespace railhead::op
