// SPDX-License-Identifier: Apache-2.0
//
// A library that is opened at run time, where an image has it.
#ifndef RAILHEAD_RUNTIME_TRANSPORT_VERBS_SHARED_LIBRARY_H_
#define RAILHEAD_RUNTIME_TRANSPORT_VERBS_SHARED_LIBRARY_H_

#include <dlfcn.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace railhead::transport::verbs {

// Stays loaded for the life of the process: device drivers cannot be unloaded safely.
class SharedLibrary {
 public:
  explicit SharedLibrary(const char* file)
      : library_(dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)),
        trouble_(library_ == nullptr ? dlerror() : "") {}

  bool opened() const { return library_ != nullptr; }
  // Why it was not.
  const std::string& trouble() const { return trouble_; }

  // Sets `function`, to null where the library has none of that name and version. Its type is what
  // the caller says.
  template <typename Function>
  void Find(const char* name, const char* version, Function*& function) {
    FindOptional(name, version, function);
    if (function == nullptr && missing_.empty()) missing_ = absl::StrCat(name, "@", version);
  }
  // The same for one that is not missed.
  template <typename Function>
  void FindOptional(const char* name, const char* version, Function*& function) {
    function = reinterpret_cast<Function*>(dlvsym(library_, name, version));
  }
  // The first that it has not; "" when it has all.
  const std::string& missing() const { return missing_; }

 private:
  void* library_;
  std::string trouble_;
  std::string missing_;
};

}  // namespace railhead::transport::verbs

#endif  // RAILHEAD_RUNTIME_TRANSPORT_VERBS_SHARED_LIBRARY_H_
