// SPDX-License-Identifier: Apache-2.0
//
// Names of Kubernetes objects, and of labels' values. Pure. The API server does not check all of
// them, such as those in owner references, so that they may be any text until they are checked
// here.
#ifndef RAILHEAD_KUBE_OBJECT_NAME_H_
#define RAILHEAD_KUBE_OBJECT_NAME_H_

#include "absl/strings/string_view.h"

namespace railhead::kube {

// Returns whether the text is 1 to 253 letters, digits, '.', '_' and '-', the first of them a
// letter or digit: a word of a command line that a shell takes as it is, and not an option.
bool IsObjectName(absl::string_view text);

}  // namespace railhead::kube

#endif  // RAILHEAD_KUBE_OBJECT_NAME_H_
