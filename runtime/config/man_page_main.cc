// SPDX-License-Identifier: Apache-2.0
//
// Prints railhead-environment(7); the build calls it.
#include <cstdio>
#include <string>

#include "runtime/config/env.h"

int main() {
  const std::string page = railhead::config::EnvManPage();
  const bool written = std::fwrite(page.data(), 1, page.size(), stdout) == page.size();
  return written && std::fflush(stdout) == 0 ? 0 : 1;
}
