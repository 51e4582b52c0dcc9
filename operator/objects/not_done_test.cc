// SPDX-License-Identifier: Apache-2.0
#include "operator/objects/not_done.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "jobs/kinds.h"
#include "kube/testing/hostile_texts.h"

namespace railhead::op {
namespace {

using ::testing::IsEmpty;

// A note of each cause.
std::vector<NotDoneNote> NotesWith(const std::vector<std::string>& arguments) {
  std::vector<NotDoneNote> notes;
  for (int i = 0; i <= static_cast<int>(Cause::kSamePriority); ++i) {
    notes.push_back(NoteOf(NotDone::kGang, static_cast<Cause>(i), arguments));
  }
  std::set<const jobs::Cause*> causes;  // several kinds have some of them
  for (const jobs::Kind* kind : jobs::kKinds) {
    causes.insert(kind->causes.begin(), kind->causes.end());
  }
  for (const jobs::Cause* cause : causes) notes.push_back(NoteOf({cause, arguments}));
  return notes;
}

constexpr NotDone kReasons[] = {NotDone::kNoJob, NotDone::kSizeInvalid, NotDone::kGang,
                                NotDone::kProfileConflict};

TEST(NotDoneTest, EachCauseHasItsSentenceAndComesBackFromTheAnnotation) {
  std::set<std::string> sentences;
  const std::vector<NotDoneNote> notes = NotesWith({"one", "2", "three/3"});
  for (const NotDoneNote& note : notes) {
    EXPECT_FALSE(note.what().empty());
    EXPECT_FALSE(note.fix().empty());
    EXPECT_FALSE(absl::StrContains(SentenceOf(note), "$")) << SentenceOf(note);
    EXPECT_EQ(ParseNotDone(EncodeNotDone({note})), std::vector<NotDoneNote>{note});
    sentences.insert(SentenceOf(note));
  }
  // Two kinds of a missing size differ in the fix, and all others in everything.
  EXPECT_EQ(sentences.size(), notes.size());
}

TEST(NotDoneTest, NoArgumentBecomesMoreThanAWord) {
  for (const std::string& text : kube::HostileTexts()) {
    for (const NotDoneNote& note : NotesWith({text, text, text})) {
      const std::string annotation = EncodeNotDone({note});
      EXPECT_FALSE(absl::StrContains(annotation, text)) << annotation;
      EXPECT_FALSE(absl::StrContains(SentenceOf(note), text));
      EXPECT_EQ(ParseNotDone(annotation), std::vector<NotDoneNote>{note});
    }
  }
}

// The pod's owner writes the annotation.
TEST(NotDoneTest, WhatAUserWritesIsNoAdvice) {
  for (const std::string& text : kube::HostileTexts()) {
    for (const std::string& line :
         {text, absl::StrCat("NoIndex: no RANK; ", text), absl::StrCat("NoIndex/", text),
          absl::StrCat("NoIndex/NotIndexed ", text),
          absl::StrCat("SizeInvalid/NotAboveRank 4 ", text),
          absl::StrCat("KindUnknown/KindUnknown ", text), absl::StrCat(text, "/NotIndexed"),
          absl::StrCat("NoIndex/NotIndexed\n", text)}) {
      for (const NotDoneNote& note : ParseNotDone(line)) {
        EXPECT_FALSE(absl::StrContains(SentenceOf(note), text)) << line;
        EXPECT_FALSE(absl::StrContains(SentenceOf(note), "evil")) << line;
      }
    }
  }
}

TEST(NotDoneTest, LinesThatAdmissionDoesNotWriteAreSkipped) {
  for (const char* line :
       {"", "NoIndex", "NoIndex/", "/NotIndexed", "NoIndex/Nothing", "Nothing/NotIndexed",
        "NoIndex/NotIndexed more", "SizeInvalid/NotAboveRank", "SizeInvalid/NotAboveRank 4",
        "SizeInvalid/NotAboveRank 4 ", "SizeInvalid/NotAboveRank 4 5 6", " NoIndex/NotIndexed",
        "NoIndex: no RANK: the Job is not Indexed; set spec.completionMode to Indexed"}) {
    EXPECT_THAT(ParseNotDone(line), IsEmpty()) << line;
  }
  std::string many;
  for (int i = 0; i < 1000; ++i) absl::StrAppend(&many, "NoIndex/NotIndexed\n");
  EXPECT_EQ(ParseNotDone(many).size(), 4U);
}

TEST(NotDoneTest, ReasonsHaveDifferentWords) {
  std::set<std::string> words;
  for (const NotDone reason : kReasons) words.insert(std::string(RowOf(reason).word));
  EXPECT_EQ(words.size(), std::size(kReasons));
}

}  // namespace
}  // namespace railhead::op
