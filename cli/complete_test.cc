// SPDX-License-Identifier: Apache-2.0
#include "cli/complete.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "cli/commands.h"

namespace railhead::cli {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class CompleteTest : public ::testing::Test {
 protected:
  Completion Ask(const std::vector<std::string>& words) const { return Complete(*app_, words); }
  std::vector<std::string> Words(const std::vector<std::string>& words) const {
    std::vector<std::string> found;
    for (const auto& [word, meaning] : Ask(words).words) found.push_back(word);
    return found;
  }

  CommandLine line_;
  std::unique_ptr<CLI::App> app_ = MakeApp("railhead", line_);
};

TEST_F(CompleteTest, Commands) {
  EXPECT_THAT(Words({""}),
              ElementsAre("doctor", "nccl-log", "why", "topology", "plan", "rails", "completion"));
  EXPECT_THAT(Words({"do"}), ElementsAre("doctor"));
  EXPECT_THAT(Words({"x"}), IsEmpty());
  EXPECT_THAT(Words({"x", ""}), IsEmpty());
}

// The table of commands is the only list: each of its flags is found.
TEST_F(CompleteTest, EveryFlagOfEveryCommand) {
  for (const CLI::App* command : app_->get_subcommands([](const CLI::App*) { return true; })) {
    const std::vector<std::string> words = Words({command->get_name(), "--"});
    EXPECT_THAT(words, Contains("--help"));
    for (const CLI::Option* option : command->get_options()) {
      for (const std::string& name : option->get_lnames()) {
        EXPECT_THAT(words, Contains("--" + name)) << command->get_name();
        if (option->get_items_expected_max() == 0) continue;
        // Either its values are known, or files are meant, or anything may stand there.
        Ask({command->get_name(), "--" + name, ""});
      }
    }
  }
  EXPECT_THAT(Words({"doctor", "--con"}), ElementsAre("--context"));
}

TEST_F(CompleteTest, ValuesAndFiles) {
  EXPECT_THAT(Words({"doctor", "-o", "j"}), ElementsAre("json"));
  EXPECT_THAT(Words({"doctor", "--output", ""}), ElementsAre("text", "json"));
  EXPECT_THAT(Words({"doctor", "--output", "=", "te"}), ElementsAre("text"));  // bash
  EXPECT_THAT(Words({"doctor", "--output", "="}), ElementsAre("text", "json"));
  EXPECT_THAT(Words({"doctor", "--output=te"}), ElementsAre("--output=text"));  // zsh, fish
  EXPECT_THAT(Words({"doctor", ""}), ElementsAre("cluster", "node", "job"));
  EXPECT_THAT(Words({"doctor", "-n", "team", "j"}), ElementsAre("job"));
  EXPECT_THAT(Words({"doctor", "node", ""}), IsEmpty());
  EXPECT_THAT(Words({"completion", ""}), ElementsAre("bash", "zsh", "fish"));
  EXPECT_TRUE(Ask({"plan", "--fabric", ""}).files);
  EXPECT_TRUE(Ask({"topology", "-f", "no"}).files);
  EXPECT_FALSE(Ask({"doctor", "-o", ""}).files);
}

TEST_F(CompleteTest, TextIsAsKubectlReadsIt) {
  EXPECT_THAT(ToText(Ask({"doctor", "-o", ""})), "text\njson\n:4\n");
  EXPECT_THAT(ToText(Ask({"plan", "--fabric", ""})), ":0\n");
  EXPECT_THAT(ToText(Ask({"doctor", "--context"})), HasSubstr("--context\tContext in that file"));
}

TEST(CompletionScriptTest, EachShellHasItsOwn) {
  std::set<std::string> scripts;
  for (const char* shell : {"bash", "zsh", "fish"}) {
    scripts.insert(CompletionScript(shell));
    EXPECT_THAT(CompletionScript(shell), HasSubstr(kCompleteCommand));
    EXPECT_THAT(CompletionScript(shell), HasSubstr("kubectl-railhead"));
  }
  EXPECT_EQ(scripts.size(), 3);
}

TEST_F(CompleteTest, AdviceNamesTheNearest) {
  EXPECT_EQ(Advice(*app_, {"docter"}), "did you mean doctor?");
  EXPECT_EQ(Advice(*app_, {"doctor", "--contxt=a"}), "did you mean --context?");
  EXPECT_EQ(Advice(*app_, {"plan", "--paramters", "7B"}), "did you mean --parameters?");
  EXPECT_THAT(Advice(*app_, {"zzzzzz"}),
              HasSubstr("the commands are doctor, nccl-log, why, topology, plan"));
  EXPECT_EQ(Advice(*app_, {"doctor", "--context", "a", "-o", "yaml"}), "");
}

}  // namespace
}  // namespace railhead::cli
