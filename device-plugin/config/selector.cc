// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/config/selector.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "fabric/hca_role.h"
#include "fabric/inventory.h"

namespace railhead::device_plugin {
namespace {

// Takes at most time in proportion to the product of both lengths: if the text after a '*' does not
// match, only the last '*' needs to match one more character.
bool WildcardMatches(absl::string_view pattern, absl::string_view text) {
  size_t p = 0;
  size_t t = 0;
  size_t last_star = absl::string_view::npos;
  size_t taken_by_star = 0;  // end of the text that the last '*' matches
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      last_star = p++;
      taken_by_star = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (last_star != absl::string_view::npos) {
      p = last_star + 1;
      t = ++taken_by_star;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == absl::string_view::npos;
}

// "0", "0 or 1", "0, 1 or 2".
template <typename T>
std::string OneOf(const std::vector<T>& entries) {
  std::string last = absl::StrCat(entries.back());
  if (entries.size() == 1) return last;
  return absl::StrCat(absl::StrJoin(entries.begin(), entries.end() - 1, ", "), " or ", last);
}

// Collects why one HCA does not match, one clause per field.
class Misses {
 public:
  void Exact(absl::string_view what, const std::vector<std::string>& wanted,
             const std::string& value) {
    const bool found = std::find(wanted.begin(), wanted.end(), value) != wanted.end();
    Add(what, wanted, !value.empty() && found, value.empty() ? "unknown" : value);
  }

  void Wildcard(absl::string_view what, const std::vector<std::string>& wanted,
                const std::string& value) {
    const bool found = std::any_of(
        wanted.begin(), wanted.end(),
        [&value](const std::string& pattern) { return WildcardMatches(pattern, value); });
    Add(what, wanted, !value.empty() && found, value.empty() ? "none" : value);
  }

  // A negative value means that there is none; it is shown as `absent`.
  void Number(absl::string_view what, const std::vector<int>& wanted, int value,
              absl::string_view absent) {
    const bool found = std::find(wanted.begin(), wanted.end(), value) != wanted.end();
    Add(what, wanted, value >= 0 && found, value < 0 ? std::string(absent) : absl::StrCat(value));
  }

  std::vector<std::string> Take() { return std::move(clauses_); }

 private:
  template <typename T>
  void Add(absl::string_view what, const std::vector<T>& wanted, bool found,
           absl::string_view value) {
    if (found || wanted.empty()) return;
    clauses_.push_back(absl::StrCat("its ", what, " is ", value, ", not ", OneOf(wanted)));
  }

  std::vector<std::string> clauses_;
};

std::vector<std::string> MissesOf(const Selector& selector, const fabric::Hca& hca) {
  const fabric::HcaPort* const port = fabric::DataPort(hca);
  Misses misses;
  misses.Wildcard("name", selector.names, hca.name);
  misses.Exact("vendor", selector.vendors, hca.vendor);
  misses.Exact("device id", selector.devices, hca.device);
  misses.Exact("driver", selector.drivers, hca.driver);
  misses.Wildcard("network interface", selector.interfaces, hca.netdev);
  misses.Exact("link layer", selector.link_layers, port == nullptr ? "" : port->link_layer);
  misses.Wildcard("PCI address", selector.pci_addresses, hca.pci_address);
  misses.Number("rail", selector.rails, hca.rail, "none");
  misses.Number("NUMA node", selector.numa_nodes, hca.numa_node, "unknown");
  misses.Exact("role", selector.roles, std::string(fabric::ToString(hca.role)));
  return misses.Take();
}

}  // namespace

bool Matches(const Selector& selector, const fabric::Hca& hca) {
  return MissesOf(selector, hca).empty();
}

std::string WhyNot(const Selector& selector, const fabric::Hca& hca) {
  return absl::StrJoin(MissesOf(selector, hca), "; ");
}

std::string ClosestMiss(const std::vector<Selector>& selectors,
                        const std::vector<fabric::Hca>& hcas) {
  if (selectors.empty()) return "";
  using Distance = std::tuple<size_t, int, size_t>;  // failed fields, rail, selector
  const fabric::Hca* closest = nullptr;
  Distance least;
  for (const fabric::Hca& hca : hcas) {
    if (!hca.offered) continue;
    for (size_t i = 0; i < selectors.size(); ++i) {
      const Distance distance(MissesOf(selectors[i], hca).size(), hca.rail, i);
      if (closest != nullptr && distance >= least) continue;
      closest = &hca;
      least = distance;
    }
  }
  if (closest == nullptr) return "this node offers no HCA";
  const auto [failed, rail, selector] = least;
  if (failed == 0) return "";
  const std::string which =
      selectors.size() == 1 ? std::string() : absl::StrCat(" to selectors[", selector, "]");
  return absl::StrCat(closest->name, " (rail ", rail, ") is the closest match", which, ", but ",
                      WhyNot(selectors[selector], *closest));
}

}  // namespace railhead::device_plugin
