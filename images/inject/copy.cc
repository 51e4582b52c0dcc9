// SPDX-License-Identifier: Apache-2.0
// The only program of the image docker.io/railhead/inject: copies what the image has into a volume
// of the pod, as an init container. Static, since the image has nothing else.
#include <cstdio>
#include <filesystem>
#include <system_error>

int main(int argc, char** argv) {
  namespace fs = std::filesystem;
  constexpr const char* kFrom = "/railhead";
  if (argc != 2) {
    std::fprintf(stderr,
                 "usage: railhead-copy FOLDER\n\nCopies Railhead's libraries to FOLDER, which is "
                 "replaced.\n");
    return 2;
  }
  std::error_code error;
  // An init container that was interrupted runs again.
  fs::remove_all(argv[1], error);
  if (!error) fs::create_directories(argv[1], error);
  if (!error)
    fs::copy(kFrom, argv[1], fs::copy_options::recursive | fs::copy_options::copy_symlinks, error);
  if (error) {
    std::fprintf(stderr, "railhead-copy: %s to %s: %s\n", kFrom, argv[1], error.message().c_str());
    return 1;
  }
  return 0;
}
