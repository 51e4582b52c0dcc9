// SPDX-License-Identifier: Apache-2.0
#include "fabric/natural_order.h"

#include <cctype>
#include <cstddef>
#include <string>

namespace railhead::fabric {
namespace {

bool IsDigit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

// Returns the digits at `*at`, without leading zeros; moves `*at` past them.
std::string TakeNumber(const std::string& text, size_t* at) {
  const size_t begin = *at;
  while (*at < text.size() && IsDigit(text[*at])) ++*at;
  size_t first = begin;
  while (first + 1 < *at && text[first] == '0') ++first;
  return text.substr(first, *at - first);
}

}  // namespace

bool NaturalLess(const std::string& a, const std::string& b) {
  size_t i = 0;
  size_t j = 0;
  while (i < a.size() && j < b.size()) {
    if (IsDigit(a[i]) && IsDigit(b[j])) {
      const std::string x = TakeNumber(a, &i);
      const std::string y = TakeNumber(b, &j);
      if (x.size() != y.size()) return x.size() < y.size();
      if (x != y) return x < y;
    } else {
      if (a[i] != b[j]) return a[i] < b[j];
      ++i;
      ++j;
    }
  }
  if ((i < a.size()) != (j < b.size())) return j < b.size();
  return a < b;
}

}  // namespace railhead::fabric
