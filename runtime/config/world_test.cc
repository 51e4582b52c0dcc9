// SPDX-License-Identifier: Apache-2.0
//
// Environments of a generator, in which any launchers have set variables: nothing, one of several
// worlds, half of one, or nonsense. A reference table says which world applies.
#include "runtime/config/world.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace railhead::config {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Variables {
  std::map<std::string, std::string> values;
  std::optional<std::string> operator()(absl::string_view name) const {
    const auto found = values.find(std::string(name));
    return found == values.end() ? std::nullopt : std::optional(found->second);
  }
};

// What somebody has done to the two variables of one source.
enum class State {
  kUnset,
  kAlone,  // rank 0 of 1
  kSmall,  // rank 1 of 2
  kLarge,  // rank 5 of 8
  kFirst,  // rank 0 of 8
  kRankOnly,
  kSizeOnly,
  kBadRank,
  kBadSize,
  kNotBelow,
};
constexpr int kStates = 10;

std::pair<int, int> WorldOf(State state) {
  switch (state) {
    case State::kAlone:
      return {0, 1};
    case State::kSmall:
      return {1, 2};
    case State::kFirst:
      return {0, 8};
    default:
      return {5, 8};
  }
}
bool IsWorld(State state) { return state >= State::kAlone && state <= State::kFirst; }

enum Source { kTorch, kOpenMpi, kPmi, kPmix, kFlux, kSlurm, kPod, kNobody };

struct Scene {
  bool torchrun = false;
  std::map<Source, State> states;            // of kOpenMpi, kPmi, kFlux, kSlurm and kPod
  std::string pmix_rank;                     // "": unset
  std::string pmix_namespace;                // "": unset
  std::string step;                          // SLURM_STEP_ID; "": unset
  std::string size_of_slurm;                 // the variable with the size of a step
  std::string choice;                        // RAILHEAD_WORLD
  std::map<std::string, std::string> noise;  // variables that mean nothing here
};

std::pair<std::string, std::string> NamesOf(Source source, const Scene& scene) {
  switch (source) {
    case kOpenMpi:
      return {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"};
    case kPmi:
      return {"PMI_RANK", "PMI_SIZE"};
    case kFlux:
      return {"FLUX_TASK_RANK", "FLUX_JOB_SIZE"};
    case kSlurm:
      return {"SLURM_PROCID", scene.size_of_slurm};
    default:
      return {"RANK", "WORLD_SIZE"};
  }
}

Variables EnvironmentOf(const Scene& scene) {
  Variables env{scene.noise};
  const auto set = [&env](const std::string& name, const std::string& value) {
    if (!value.empty()) env.values[name] = value;
  };
  for (const auto& [source, state] : scene.states) {
    const auto [rank, size] = NamesOf(source, scene);
    const auto [own_rank, own_size] = WorldOf(state);
    if (state == State::kUnset) continue;
    if (state != State::kSizeOnly) set(rank, absl::StrCat(own_rank));
    if (state != State::kRankOnly) set(size, absl::StrCat(own_size));
    if (state == State::kBadRank) set(rank, "-1");
    if (state == State::kBadSize) set(size, "65537");
    if (state == State::kNotBelow) set(rank, absl::StrCat(own_size));
  }
  if (scene.torchrun) set("TORCHELASTIC_RUN_ID", "none");
  set("PMIX_RANK", scene.pmix_rank);
  set("PMIX_NAMESPACE", scene.pmix_namespace);
  set("SLURM_STEP_ID", scene.step);
  set("RAILHEAD_WORLD", scene.choice);
  return env;
}

// The reference. It looks at the scene, not at variables.
struct Expected {
  enum Kind { kNoWorld, kError, kStarts } kind = kNoWorld;
  Source decides = kNobody;
  int rank = 0;
  int size = 1;
  bool noted = false;
  std::vector<std::string> named;  // by the error
};

// In the order of the table in world.h, the first source of which anything is set.
Source InnermostLauncher(const Scene& scene) {
  const auto is_set = [&](Source source) { return scene.states.at(source) != State::kUnset; };
  const std::array<std::pair<Source, bool>, 6> table = {{
      {kTorch, scene.torchrun && is_set(kPod)},
      {kOpenMpi, is_set(kOpenMpi)},
      {kPmi, is_set(kPmi)},
      {kPmix, !scene.pmix_rank.empty() && scene.pmix_namespace != "slurm.pmix.7.0" &&
                  scene.pmix_namespace != "fABC"},
      {kFlux, is_set(kFlux)},
      {kSlurm, is_set(kSlurm) && scene.step == "0"},
  }};
  for (const auto& [source, there] : table) {
    if (there) return source;
  }
  return kNobody;
}

Expected Of(Source source, const Scene& scene) {
  Expected expected;
  expected.decides = source;
  if (source == kPmix) {
    expected.kind = Expected::kError;
    expected.named = {"PMIX_RANK", "RAILHEAD_WORLD=pod"};
    return expected;
  }
  const State state = scene.states.at(source == kTorch ? kPod : source);
  const auto [rank, size] = NamesOf(source, scene);
  expected.kind = IsWorld(state) ? Expected::kStarts : Expected::kError;
  std::tie(expected.rank, expected.size) = WorldOf(state);
  if (state != State::kBadSize) expected.named.push_back(rank);
  if (state != State::kBadRank) expected.named.push_back(size);
  return expected;
}

Expected Reference(const Scene& scene) {
  const State pod = scene.states.at(kPod);
  const bool half_pod = pod == State::kRankOnly || pod == State::kSizeOnly;
  const bool whole_pod = pod != State::kUnset && !half_pod;
  if (scene.choice == "both") return {Expected::kError, kNobody, 0, 1, false, {"RAILHEAD_WORLD"}};
  if (scene.choice == "pod") return whole_pod ? Of(kPod, scene) : Expected();
  const Source launcher = InnermostLauncher(scene);
  if (launcher == kNobody) {
    if (scene.choice == "launcher") {
      return {Expected::kError, kNobody, 0, 1, false, {"RAILHEAD_WORLD=launcher"}};
    }
    if (whole_pod) return Of(kPod, scene);
    // One process of Slurm; SLURM_STEP_NUM_TASKS alone says nothing.
    const State slurm = scene.states.at(kSlurm);
    if (pod == State::kUnset && slurm != State::kUnset &&
        (slurm != State::kSizeOnly || scene.size_of_slurm == "SLURM_NTASKS")) {
      return {Expected::kStarts, kNobody, 0, 1, false, {}};
    }
    return {};
  }
  Expected by_launcher = Of(launcher, scene);
  if (launcher == kTorch || by_launcher.kind == Expected::kError || !whole_pod ||
      scene.choice == "launcher") {
    return by_launcher;
  }
  const Expected by_pod = Of(kPod, scene);
  if (by_pod.kind == Expected::kError) return by_pod;
  if (by_pod.size > by_launcher.size) {
    by_launcher.kind = Expected::kError;
    by_launcher.named = {"RANK",
                         "WORLD_SIZE",
                         "RAILHEAD_WORLD=pod",
                         "RAILHEAD_WORLD=launcher",
                         NamesOf(launcher, scene).first,
                         NamesOf(launcher, scene).second};
    return by_launcher;
  }
  by_launcher.noted = by_pod.size != by_launcher.size || by_pod.rank != by_launcher.rank;
  return by_launcher;
}

// Most sources are unset, so that each of them is often the innermost.
class Generator {
 public:
  Scene Next() {
    Scene scene;
    scene.torchrun = Below(4) == 0;
    for (const Source source : {kOpenMpi, kPmi, kFlux, kSlurm, kPod}) {
      scene.states[source] =
          Below(5) < (source == kPod ? 1 : 3) ? State::kUnset : static_cast<State>(Below(kStates));
    }
    scene.pmix_rank = OneOf({"", "", "", "5"});
    scene.pmix_namespace = OneOf({"", "prterun-host-12@1", "slurm.pmix.7.0", "fABC"});
    scene.step = OneOf({"", "0", "0", "4294967291", "-5", "batch"});
    scene.size_of_slurm = OneOf({"SLURM_NTASKS", "SLURM_STEP_NUM_TASKS"});
    // Errors name the older variable if neither is set.
    if (scene.states[kSlurm] == State::kRankOnly) scene.size_of_slurm = "SLURM_NTASKS";
    scene.choice = OneOf({"", "", "auto", "launcher", "pod", "both"});
    scene.noise = {{"FLUX_JOB_ID", "fABC"}, {"RAILHEAD_POD", "p"}, {"MASTER_ADDR", "m"}};
    // Set, but empty: as if it were not.
    if (Below(2) == 0) scene.noise["PMI_RANK"] = "";
    return scene;
  }

 private:
  int Below(int limit) { return static_cast<int>(random_() % static_cast<unsigned>(limit)); }
  std::string OneOf(const std::vector<std::string>& values) {
    return values[static_cast<size_t>(Below(static_cast<int>(values.size())))];
  }

  std::mt19937 random_{20261};
};

TEST(WorldTest, AnyLaunchersAgreeWithTheReferenceTable) {
  Generator generator;
  std::set<std::pair<Source, Expected::Kind>> seen;
  int notes = 0;
  for (int i = 0; i < 20000; ++i) {
    const Scene scene = generator.Next();
    const Variables env = EnvironmentOf(scene);
    const Expected expected = Reference(scene);
    const absl::StatusOr<std::optional<World>> found = FindWorld(env);
    const auto what = [&] {
      return absl::StrCat(absl::StrJoin(env.values, " ", absl::PairFormatter("=")), "\nhas ",
                          !found.ok() ? found.status().ToString()
                          : !*found   ? "no world"
                                      : (*found)->source);
    };
    seen.emplace(expected.decides, expected.kind);
    ASSERT_EQ(found.ok(), expected.kind != Expected::kError) << what();
    if (!found.ok()) {
      for (const std::string& name : expected.named) {
        ASSERT_THAT(std::string(found.status().message()), HasSubstr(name)) << what();
      }
      continue;
    }
    ASSERT_EQ(found->has_value(), expected.kind == Expected::kStarts) << what();
    if (!found->has_value()) continue;
    const World& world = **found;
    ASSERT_EQ(std::pair(world.rank, world.size), std::pair(expected.rank, expected.size)) << what();
    for (const std::string& name : expected.named) {
      ASSERT_THAT(world.source, HasSubstr(absl::StrCat(name, "="))) << what();
    }
    ASSERT_EQ(!world.note.empty(), expected.noted) << what() << "\n" << world.note;
    if (expected.noted) {
      ++notes;
      ASSERT_THAT(world.note, AllOf(HasSubstr(absl::StrCat("uses ", world.source)),
                                    HasSubstr(", not RANK="), HasSubstr(" and WORLD_SIZE=")));
    }
  }
  // The generator has made what it is for.
  for (const Source source : {kTorch, kOpenMpi, kPmi, kFlux, kSlurm, kPod, kNobody}) {
    EXPECT_TRUE(seen.contains({source, Expected::kStarts})) << source;
    EXPECT_TRUE(seen.contains({source, Expected::kError})) << source;
  }
  EXPECT_TRUE(seen.contains({kPmix, Expected::kError}));
  EXPECT_GT(notes, 100);
}

// What the programs set, as seen in processes that they have started.
TEST(WorldTest, RealLaunchers) {
  struct Case {
    const char* what;
    std::map<std::string, std::string> env;
    int rank;
    int size;
  };
  const Case cases[] = {
      {"mpirun of Open MPI 4, in a pod of one",
       {{"RANK", "0"},
        {"WORLD_SIZE", "1"},
        {"OMPI_COMM_WORLD_RANK", "1"},
        {"OMPI_COMM_WORLD_SIZE", "2"},
        {"PMIX_RANK", "1"},
        {"PMIX_NAMESPACE", "3187802113"}},
       1,
       2},
      {"mpirun in an allocation of Slurm: srun has started its daemons",
       {{"OMPI_COMM_WORLD_RANK", "6"},
        {"OMPI_COMM_WORLD_SIZE", "8"},
        {"SLURM_STEP_ID", "0"},
        {"SLURM_PROCID", "0"},
        {"SLURM_NTASKS", "3"},
        {"SLURM_STEP_NUM_TASKS", "3"}},
       6,
       8},
      {"srun --mpi=pmix --preserve-env of a smaller step",
       {{"SLURM_STEP_ID", "2"},
        {"SLURM_PROCID", "1"},
        {"SLURM_NTASKS", "16"},
        {"SLURM_STEP_NUM_TASKS", "4"},
        {"PMIX_RANK", "1"},
        {"PMIX_NAMESPACE", "slurm.pmix.17261351.2"}},
       1,
       4},
      {"flux run -o pmi=pmix",
       {{"FLUX_JOB_ID", "f2xyz"},
        {"FLUX_TASK_RANK", "3"},
        {"FLUX_JOB_SIZE", "4"},
        {"PMIX_RANK", "3"},
        {"PMIX_NAMESPACE", "f2xyz"}},
       3,
       4},
      {"a batch script",
       {{"SLURM_JOB_ID", "7"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "16"}},
       0,
       1},
      {"a batch script of Slurm 23.11, whose step has a number",
       {{"SLURM_JOB_ID", "7"},
        {"SLURM_STEP_ID", "4294967291"},
        {"SLURM_STEPID", "4294967291"},
        {"SLURM_STEP_NUM_TASKS", "1"},
        {"SLURM_STEP_NUM_NODES", "1"},
        {"SLURM_PROCID", "0"},
        {"SLURM_LOCALID", "0"},
        {"SLURM_NTASKS", "16"},
        {"SLURM_NPROCS", "16"}},
       0,
       1},
      {"an interactive step of salloc",
       {{"SLURM_JOB_ID", "7"},
        {"SLURM_STEP_ID", "4294967290"},
        {"SLURM_STEP_NUM_TASKS", "1"},
        {"SLURM_PROCID", "0"},
        {"SLURM_NTASKS", "16"}},
       0,
       1},
      {"mpirun in a batch script of 16 tasks",
       {{"SLURM_JOB_ID", "7"},
        {"SLURM_PROCID", "0"},
        {"SLURM_NTASKS", "16"},
        {"OMPI_COMM_WORLD_RANK", "1"},
        {"OMPI_COMM_WORLD_SIZE", "2"},
        {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}},
       1,
       2},
      {"a shell of salloc", {{"SLURM_JOB_ID", "7"}, {"SLURM_NTASKS", "16"}}, 0, 1},
      {"torchrun that srun has started, one for each node",
       {{"TORCHELASTIC_RUN_ID", "none"},
        {"RANK", "9"},
        {"WORLD_SIZE", "16"},
        {"SLURM_STEP_ID", "0"},
        {"SLURM_PROCID", "1"},
        {"SLURM_STEP_NUM_TASKS", "2"}},
       9,
       16},
  };
  for (const Case& one : cases) {
    const absl::StatusOr<std::optional<World>> world = FindWorld(Variables{one.env});
    ASSERT_TRUE(world.ok()) << one.what << ": " << world.status();
    ASSERT_TRUE(world->has_value()) << one.what;
    EXPECT_EQ((*world)->rank, one.rank) << one.what;
    EXPECT_EQ((*world)->size, one.size) << one.what;
  }
}

TEST(WorldTest, TextsNameBothWorldsAndTheFix) {
  Variables env{{{"RANK", "0"},
                 {"WORLD_SIZE", "1"},
                 {"OMPI_COMM_WORLD_RANK", "1"},
                 {"OMPI_COMM_WORLD_SIZE", "2"}}};
  EXPECT_EQ((*FindWorld(env))->note,
            "this process has two worlds: uses OMPI_COMM_WORLD_RANK=1 and OMPI_COMM_WORLD_SIZE=2 "
            "(set by mpirun of Open MPI), not RANK=0 and WORLD_SIZE=1 (set for the pod, by the "
            "Railhead operator or its spec); set RAILHEAD_WORLD=launcher or RAILHEAD_WORLD=pod to "
            "decide");
  env.values["RAILHEAD_WORLD"] = "launcher";
  EXPECT_THAT((*FindWorld(env))->note, IsEmpty());
  env.values["RAILHEAD_WORLD"] = "pod";
  EXPECT_EQ((*FindWorld(env))->size, 1);
  EXPECT_THAT((*FindWorld(env))->note, IsEmpty());
  env.values["RAILHEAD_WORLD"] = "auto";
  env.values["WORLD_SIZE"] = "3";
  EXPECT_EQ(
      FindWorld(env).status().message(),
      "this process has two worlds, and would start in the smaller one: RANK=0 and WORLD_SIZE=3 "
      "(set for the pod, by the Railhead operator or its spec), and OMPI_COMM_WORLD_RANK=1 and "
      "OMPI_COMM_WORLD_SIZE=2 (set by mpirun of Open MPI); set RAILHEAD_WORLD=pod in all processes "
      "to use the 3 ranks of the pods, or RAILHEAD_WORLD=launcher to use the 2 ranks of the "
      "launcher");
  env.values["OMPI_COMM_WORLD_SIZE"] = "\x1b[31m";
  EXPECT_EQ(FindWorld(env).status().message(),
            "OMPI_COMM_WORLD_SIZE='\\x1b[31m' is not allowed: set it to a whole number from 1 to "
            "65536");
}

}  // namespace
}  // namespace railhead::config
