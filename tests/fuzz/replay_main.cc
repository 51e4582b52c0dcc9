// SPDX-License-Identifier: Apache-2.0
//
// Calls a fuzz test once with each file of a corpus, without libFuzzer, so that what a fuzzer found
// once stays found. Prints the file's name first, so that a crash names it.
//
// usage: railhead_fuzz_replay NAME CORPUS_FOLDER
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <vector>

// cmake/RailheadBuild.cmake writes targets.inc: RAILHEAD_FUZZ_TARGET(name) for each fuzz test,
// whose LLVMFuzzerTestOneInput it has compiled under that name.
#define RAILHEAD_FUZZ_TARGET(name) extern "C" int name(const uint8_t* data, size_t size);
#include "targets.inc"
#undef RAILHEAD_FUZZ_TARGET

namespace {

struct FuzzTest {
  const char* name;
  int (*run)(const uint8_t* data, size_t size);
};

constexpr FuzzTest kTests[] = {
#define RAILHEAD_FUZZ_TARGET(name) {#name, name},
#include "targets.inc"
#undef RAILHEAD_FUZZ_TARGET
};

int Replay(const FuzzTest& test, const char* folder) {
  std::error_code error;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  if (error || files.empty()) {
    std::fprintf(stderr, "%s has no file to replay\n", folder);
    return 1;
  }
  std::sort(files.begin(), files.end());
  for (const std::filesystem::path& path : files) {
    std::fprintf(stderr, "%s\n", path.c_str());
    std::ifstream file(path, std::ios::binary);
    // Copied to a buffer of exactly the file's size: a sanitizer sees what is read beyond it.
    const std::vector<char> text{std::istreambuf_iterator<char>(file),
                                 std::istreambuf_iterator<char>()};
    const std::vector<uint8_t> bytes(text.begin(), text.end());
    if (!file) {
      std::fprintf(stderr, "cannot read it\n");
      return 1;
    }
    test.run(bytes.data(), bytes.size());
  }
  std::fprintf(stderr, "%zu files replayed\n", files.size());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s NAME CORPUS_FOLDER\n", argv[0]);
    return 2;
  }
  for (const FuzzTest& test : kTests) {
    if (std::strcmp(test.name, argv[1]) == 0) return Replay(test, argv[2]);
  }
  std::fprintf(stderr, "no fuzz test '%s'; there are:\n", argv[1]);
  for (const FuzzTest& test : kTests) std::fprintf(stderr, "  %s\n", test.name);
  return 2;
}
