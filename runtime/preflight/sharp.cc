// SPDX-License-Identifier: Apache-2.0
#include "runtime/preflight/sharp.h"

#include <cstddef>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "fabric/root_files.h"

namespace railhead::preflight {
namespace {

using fabric::NodeKind;
using fabric::RootFiles;
using Directories = std::vector<std::string>;

constexpr char kDefaultPlugin[] = "libnccl-net.so";
constexpr char kLibrary[] = "libsharp_coll.so";
// Asks sharp_am for a job, and the switches for a barrier.
constexpr char kHello[] = "sharp_hello";
// Begins the name of the table by which NCCL finds CollNet in a plugin.
constexpr char kCollNetTable[] = "ncclCollNetPlugin_v";
// More than any plugin has; the names of its symbols are near its beginning.
constexpr size_t kMostOfPlugin = 16 << 20;

constexpr const char* kUsualLibraries[] = {
    "/lib64",        "/usr/lib64", "/lib/x86_64-linux-gnu",  "/usr/lib/x86_64-linux-gnu",
    "/lib",          "/usr/lib",   "/lib/aarch64-linux-gnu", "/usr/lib/aarch64-linux-gnu",
    "/usr/local/lib"};
constexpr const char* kSharpPackages[] = {"/opt/mellanox/sharp", "/opt/hpcx/sharp"};

// Adds the paths of a variable such as PATH.
void AddPaths(const std::optional<std::string>& value, Directories& directories) {
  if (!value.has_value()) return;
  for (const absl::string_view path : absl::StrSplit(*value, ':', absl::SkipEmpty())) {
    if (absl::StartsWith(path, "/")) directories.emplace_back(path);
  }
}

void AddConfigured(const RootFiles& files, Directories& directories) {
  const absl::StatusOr<std::vector<std::string>> names = files.List("/etc/ld.so.conf.d");
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    const absl::StatusOr<std::vector<std::string>> lines =
        files.ReadLines(absl::StrCat("/etc/ld.so.conf.d/", name));
    if (!lines.ok()) continue;
    for (const std::string& line : *lines) {
      if (absl::StartsWith(line, "/")) directories.push_back(line);
    }
  }
}

std::string FindFile(const RootFiles& files, const Directories& directories,
                     absl::string_view name) {
  for (const std::string& directory : directories) {
    std::string path = absl::StrCat(directory, "/", name);
    if (files.Stat(path).kind == NodeKind::kFile) return path;
  }
  return "";
}

// Returns the first file whose name is `name` or begins with `name` and a dot.
std::string FindVersion(const RootFiles& files, const Directories& directories,
                        const std::string& name) {
  for (const std::string& directory : directories) {
    const absl::StatusOr<std::vector<std::string>> entries = files.List(directory);
    if (!entries.ok()) continue;
    for (const std::string& entry : *entries) {
      if (entry == name || absl::StartsWith(entry, absl::StrCat(name, "."))) {
        return absl::StrCat(directory, "/", entry);
      }
    }
  }
  return "";
}

// Returns the file that NCCL loads for NCCL_NET_PLUGIN; the first of a list.
std::string PluginFile(const std::optional<std::string>& value) {
  if (!value.has_value() || value->empty()) return kDefaultPlugin;
  std::string first = value->substr(0, value->find(','));
  if (absl::StrContains(first, '/') || absl::StrContains(first, ".so")) return first;
  return absl::StrCat("libnccl-net-", first, ".so");
}

}  // namespace

SharpFacts ReadSharp(const std::string& root,
                     absl::FunctionRef<std::optional<std::string>(absl::string_view)> variable) {
  SharpFacts facts;
  facts.wanted = variable("NCCL_COLLNET_ENABLE") == "1";
  if (!facts.wanted) return facts;
  facts.name = PluginFile(variable("NCCL_NET_PLUGIN"));
  const absl::StatusOr<RootFiles> files = RootFiles::Open(root);
  if (!files.ok()) return facts;

  Directories libraries;
  AddPaths(variable("LD_LIBRARY_PATH"), libraries);
  AddConfigured(*files, libraries);
  libraries.insert(libraries.end(), std::begin(kUsualLibraries), std::end(kUsualLibraries));
  Directories programs;
  AddPaths(variable("PATH"), programs);

  facts.plugin = absl::StartsWith(facts.name, "/") ? FindFile(*files, {""}, facts.name.substr(1))
                                                   : FindFile(*files, libraries, facts.name);
  if (!facts.plugin.empty()) {
    const absl::StatusOr<std::string> content = files->ReadStart(facts.plugin, kMostOfPlugin);
    facts.has_collnet = content.ok() && absl::StrContains(*content, kCollNetTable);
  }
  Directories packages(std::begin(kSharpPackages), std::end(kSharpPackages));
  AddPaths(variable("HPCX_SHARP_DIR"), packages);
  for (const std::string& package : packages) {
    libraries.push_back(absl::StrCat(package, "/lib"));
    programs.push_back(absl::StrCat(package, "/bin"));
  }
  facts.library = FindVersion(*files, libraries, kLibrary);
  facts.hello = FindFile(*files, programs, kHello);
  return facts;
}

}  // namespace railhead::preflight
