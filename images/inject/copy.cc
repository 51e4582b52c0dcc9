// SPDX-License-Identifier: Apache-2.0
// The only program of the image docker.io/railhead/inject: copies what the image has into a volume
// of the pod, as an init container. Static, since the image has nothing else.
#include <cstdio>
#include <filesystem>
#include <system_error>

int main(int argc, char** argv) {
  namespace fs = std::filesystem;
  if (argc < 2 || argc > 3) {
    std::fprintf(
        stderr,
        "usage: railhead-copy FOLDER [PART]\n\nCopies Railhead's libraries to FOLDER, which "
        "is replaced. PART: nccl-net, the network plugin for NCCL, alone.\n");
    return 2;
  }
  std::error_code error;
  // A part is a link to a folder.
  const fs::path from = fs::canonical(fs::path("/railhead") / (argc == 3 ? argv[2] : ""), error);
  if (error) {
    std::fprintf(stderr, "railhead-copy: this image has no %s\n", argv[2]);
    return 1;
  }
  // An init container that was interrupted runs again.
  fs::remove_all(argv[1], error);
  if (!error) fs::create_directories(argv[1], error);
  if (!error)
    fs::copy(from, argv[1], fs::copy_options::recursive | fs::copy_options::copy_symlinks, error);
  if (error) {
    std::fprintf(stderr, "railhead-copy: %s to %s: %s\n", from.c_str(), argv[1],
                 error.message().c_str());
    return 1;
  }
  return 0;
}
