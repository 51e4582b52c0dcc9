// SPDX-License-Identifier: Apache-2.0
//
// A library opened at run time, if the image has it.
#ifndef RAILHEAD_RUNTIME_TRANSPORT_VERBS_SHARED_LIBRARY_H_
#define RAILHEAD_RUNTIME_TRANSPORT_VERBS_SHARED_LIBRARY_H_

#include <dlfcn.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace railhead::transport::verbs {

// Stays loaded for the life of the process, because device drivers cannot be unloaded safely.
class SharedLibrary {
 public:
  explicit SharedLibrary(const char* file)
      : library_(dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)),
        trouble_(library_ == nullptr ? dlerror() : "") {}

  bool opened() const { return library_ != nullptr; }
  // Returns why it was not opened.
  const std::string& trouble() const { return trouble_; }

  // Sets `function`, to null if the library lacks that name and version. The caller must pass the
  // right type.
  template <typename Function>
  void Find(const char* name, const char* version, Function*& function) {
    FindOptional(name, version, function);
    if (function == nullptr && missing_.empty()) missing_ = absl::StrCat(name, "@", version);
  }
  // Does the same for a function that may be absent.
  template <typename Function>
  void FindOptional(const char* name, const char* version, Function*& function) {
    function = reinterpret_cast<Function*>(dlvsym(library_, name, version));
  }
  // Returns the first missing function; "" if there is none.
  const std::string& missing() const { return missing_; }

 private:
  void* library_;
  std::string trouble_;
  std::string missing_;
};

}  // namespace railhead::transport::verbs

#endif  // RAILHEAD_RUNTIME_TRANSPORT_VERBS_SHARED_LIBRARY_H_
