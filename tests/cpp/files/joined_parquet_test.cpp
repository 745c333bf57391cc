// Files that become one, and those that do not. tests/python/loader/test_joined_files.py reads the
// rows of files of real writers.
#include "files/joined_parquet.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "files/parquet_footer.hpp"
#include "support/footer_writer.hpp"

namespace {

using arrowdl::JoinedParquet;
using arrowdl::testing::FooterWriter;
using arrowdl::testing::kWireBinary;
using arrowdl::testing::kWireInt32;
using arrowdl::testing::kWireStruct;

/// A file of one column and one row group, in which each number may be wrong.
struct File {
  int64_t rows = 5;
  int64_t page_rows = 5;
  int64_t page_type = 0;
  int64_t page_size = 3;  // what its header says
  int64_t chunk_size = -1;
  int64_t dictionary = -1;  // the offset of a dictionary
  int64_t data = -1;        // the offset of the data page
  int64_t repetition = 1;
  std::string column = "x";
  std::string writer = "w";
  bool is_split = false;  // into two pages

  std::vector<uint8_t> make() const {
    FooterWriter file;
    for (const char letter : std::string("PAR1")) file.byte(letter);
    if (is_split) file.append(make_page(page_rows - 1)).append(make_page(1));
    if (!is_split) file.append(make_page(page_rows));
    const size_t end = file.bytes().size();
    const std::vector<uint8_t> footer = make_footer(static_cast<int64_t>(end));
    file.append(footer);
    for (int shift = 0; shift < 32; shift += 8) file.byte(static_cast<int>(footer.size() >> shift));
    for (const char letter : std::string("PAR1")) file.byte(letter);
    return file.bytes();
  }

 private:
  std::vector<uint8_t> make_page(int64_t values) const {
    FooterWriter page;
    page.field(1, kWireInt32).number(page_type).field(1, kWireInt32).number(3);
    page.field(1, kWireInt32).number(page_size).field(page_type == 3 ? 5 : 2, kWireStruct);
    page.field(1, kWireInt32).number(values).stop().stop();
    return page.byte(1).byte(2).byte(3).bytes();
  }

  std::vector<uint8_t> make_footer(int64_t end) const {
    FooterWriter footer;
    footer.schema(column, repetition);
    footer.int64(1, rows).list(1, 1, kWireStruct).list(1, 1, kWireStruct);
    footer.int64(2, 4).field(1, kWireStruct);
    footer.field(1, kWireInt32).number(1).list(1, 1, kWireInt32).number(0);
    footer.list(1, 1, kWireBinary).text("x").field(1, kWireInt32).number(0);
    footer.int64(1, rows).int64(1, 9).int64(1, chunk_size < 0 ? end - 4 : chunk_size);
    footer.int64(2, data < 0 ? 4 : data);
    if (dictionary >= 0) footer.int64(2, dictionary);
    footer.stop().stop().int64(1, 9).int64(1, rows).stop();
    return footer.field(2, kWireBinary).text(writer).stop().bytes();
  }
};

bool add(JoinedParquet* joined, const File& file) {
  const std::vector<uint8_t> bytes = file.make();
  const size_t begin = joined->bytes.size();
  joined->bytes.insert(joined->bytes.end(), bytes.begin(), bytes.end());
  return joined->add(begin);
}

/// Whether a file is added behind one that is as it should be.
bool joins(const File& file) {
  JoinedParquet joined;
  EXPECT_TRUE(add(&joined, File{}));
  return add(&joined, file);
}

TEST(JoinedParquet, HasTheRowGroupsOfAllWithTheirPages) {
  JoinedParquet joined;
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < 100; ++i) {
    File file;
    file.rows = file.page_rows = i % 7;
    if (i % 3 == 0) file.dictionary = i % 2 * 4;
    ASSERT_TRUE(add(&joined, file)) << i;
    rows.push_back(i % 7);
  }
  joined.finish();
  const uint8_t* const tail = joined.bytes.data() + joined.bytes.size() - 8;
  const size_t length = arrowdl::read_footer_length(tail);
  const auto footer = arrowdl::parse_parquet_footer(tail - length, length);
  ASSERT_TRUE(footer);
  EXPECT_EQ(footer->rows, rows);
  EXPECT_EQ(footer->nbytes, std::vector<int64_t>(100, 9));
  JoinedParquet again;  // which looks for the pages
  again.bytes = joined.bytes;
  ASSERT_TRUE(again.add(0));
  again.finish();
  EXPECT_EQ(again.bytes, joined.bytes);
}

TEST(JoinedParquet, RefusesMoreRowsThanANumberHas) {
  constexpr int64_t kMany = std::numeric_limits<int64_t>::max() / 2 + 1;
  File file;
  file.rows = file.page_rows = kMany;
  JoinedParquet joined;
  EXPECT_TRUE(add(&joined, file));
  EXPECT_FALSE(add(&joined, file));
}

TEST(JoinedParquet, TakesPagesOfEachKind) {
  File file;
  EXPECT_TRUE(joins(file));
  file.is_split = true;
  EXPECT_TRUE(joins(file));
  file.page_type = 3;
  EXPECT_TRUE(joins(file));
}

TEST(JoinedParquet, RefusesPagesThatTheFooterDoesNotSay) {
  for (const int64_t rows : {4, 6, -5}) {
    File file;
    file.page_rows = rows;
    EXPECT_FALSE(joins(file)) << rows;
  }
  for (const int64_t type : {-1, 1, 2, 4}) {  // a dictionary has no rows
    File file;
    file.page_type = type;
    EXPECT_FALSE(joins(file)) << type;
  }
  for (const int64_t size : {-1, 0, 2, 4, 1 << 30}) {
    File file;
    file.page_size = size;
    EXPECT_FALSE(joins(file)) << size;
  }
}

TEST(JoinedParquet, RefusesColumnsBeyondTheirFile) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  for (const int64_t size : {int64_t{0}, int64_t{1}, int64_t{100}, kMost}) {
    File file;
    file.chunk_size = size;
    EXPECT_FALSE(joins(file)) << size;
  }
  for (const int64_t offset : {int64_t{0}, int64_t{3}, int64_t{5}, int64_t{100}, kMost}) {
    File file;
    file.data = offset;
    EXPECT_FALSE(joins(file)) << offset;
  }
  File file;
  file.dictionary = kMost;
  EXPECT_FALSE(joins(file));
}

TEST(JoinedParquet, RefusesOtherFooters) {
  File file;
  file.column = "y";
  EXPECT_FALSE(joins(file));
  file = {};
  file.writer = "v";
  EXPECT_FALSE(joins(file));
  file = {};
  file.repetition = 2;
  JoinedParquet joined;
  EXPECT_FALSE(add(&joined, file));
}

TEST(JoinedParquet, RefusesEachPartOfAFile) {
  const std::vector<uint8_t> whole = File{}.make();
  for (size_t size = 0; size < whole.size(); ++size) {
    JoinedParquet ends;
    ends.bytes.assign(whole.begin(), whole.begin() + static_cast<int64_t>(size));
    EXPECT_FALSE(ends.add(0)) << size;
    JoinedParquet begins;
    begins.bytes.assign(whole.end() - static_cast<int64_t>(size), whole.end());
    EXPECT_FALSE(begins.add(0)) << size;
  }
}

TEST(JoinParquetFiles, ReturnsNothingForWhatIsNoFile) {
  EXPECT_FALSE(arrowdl::join_parquet_files({"/nowhere/a.parquet"}, 1 << 20));
  EXPECT_FALSE(arrowdl::join_parquet_files({"/tmp"}, 1 << 20));
}

}  // namespace
