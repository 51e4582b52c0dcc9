// SPDX-License-Identifier: Apache-2.0
//
// Starter: the processes that have started a rank, by which rank 0 distinguishes two jobs on one
// host that no launcher or name identifies. The ranks of a job have a common one: a shell, a
// script, a launcher's daemon. A rank may have been started through other programs (sh -c), or by a
// fork of the script, such as a subshell, so each reports all its ancestors up to the first that is
// neither.
#ifndef RAILHEAD_RUNTIME_BOOTSTRAP_STARTER_H_
#define RAILHEAD_RUNTIME_BOOTSTRAP_STARTER_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace railhead::bootstrap {

// Maximum size of a starter's text.
inline constexpr size_t kStarterLimit = 300;

// Returns the starters of this process as a text for other ranks; "" if they are not known: they
// have ended, or are daemons such as sshd, of which each rank may have another. An ancestor is a
// part of the rank if it has the same value of `rank_variable` in its environment. Reads /proc
// under `root`.
std::string FindStarter(const std::string& root, const std::string& rank_variable);

// Returns true if both are known and of one host, and no process has started both ranks.
bool HaveOtherStarters(absl::string_view one, absl::string_view other);

// Returns a text that is the same for all ranks of which the same process outside of them is the
// nearest, as a launcher's daemon is; "" for "".
std::string OutermostStarter(absl::string_view starter);

// Returns "process 12 (bash)" for messages.
std::string DescribeStarter(absl::string_view starter);

}  // namespace railhead::bootstrap

#endif  // RAILHEAD_RUNTIME_BOOTSTRAP_STARTER_H_
