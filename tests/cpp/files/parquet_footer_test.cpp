// Footers that are well-formed, cut, changed and contradictory. Files of real writers are read by
// tests/python/loader/test_local_footers.py.
#include "files/parquet_footer.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "support/footer_writer.hpp"

namespace {

using arrowdl::ParquetFooter;
using arrowdl::parse_parquet_footer;
using arrowdl::testing::FooterWriter;
using arrowdl::testing::kWireBinary;
using arrowdl::testing::kWireInt32;
using arrowdl::testing::kWireInt64;
using arrowdl::testing::kWireStruct;

/// A column chunk with its number of values, and the name of a file; `more` are fields behind the
/// ninth of its ColumnMetaData.
std::vector<uint8_t> make_chunk(int64_t values, bool names_file, int64_t type, int64_t codec,
                                const FooterWriter& more) {
  FooterWriter writer;
  if (names_file) writer.field(1, kWireBinary).text("other.parquet");
  writer.int64(names_file ? 1 : 2, 4).field(1, kWireStruct);
  writer.field(1, kWireInt32).number(type).list(1, 1, kWireInt32).number(0);
  writer.list(1, 1, kWireBinary).text("x").field(1, kWireInt32).number(codec);
  writer.int64(1, values).int64(1, 9).int64(1, 9).int64(2, 4).append(more.bytes()).stop();
  return writer.stop().bytes();
}

std::vector<uint8_t> make_group(int64_t rows, int64_t nbytes, bool names_file = false,
                                int64_t values = -1, int64_t type = 1, int64_t codec = 0,
                                const FooterWriter& more = {}) {
  FooterWriter writer;
  writer.list(1, 1, kWireStruct);
  writer.append(make_chunk(values < 0 ? rows : values, names_file, type, codec, more));
  return writer.int64(1, nbytes).int64(1, rows).stop().bytes();
}

FooterWriter begin_footer(const std::string& column = "x", int64_t repetition = 1) {
  return FooterWriter().schema(column, repetition);
}

std::vector<uint8_t> make_footer(int64_t total, const std::vector<std::vector<uint8_t>>& groups,
                                 int64_t repetition = 1) {
  FooterWriter writer = begin_footer("x", repetition);
  writer.int64(1, total).list(1, groups.size(), kWireStruct);
  for (const std::vector<uint8_t>& group : groups) writer.append(group);
  return writer.stop().bytes();
}

auto parse_footer(const std::vector<uint8_t>& bytes) {
  return parse_parquet_footer(bytes.data(), bytes.size());
}

bool is_sound(const std::vector<uint8_t>& bytes) {
  return arrowdl::is_sound_parquet_footer(bytes.data(), bytes.size()).value();
}

TEST(ParquetFooter, HasTheRowsAndBytesOfEachGroup) {
  const auto footer = parse_footer(make_footer(10, {make_group(7, 70), make_group(3, 20)}));
  ASSERT_TRUE(footer);
  EXPECT_EQ(footer->rows, (std::vector<int64_t>{7, 3}));
  EXPECT_EQ(footer->nbytes, (std::vector<int64_t>{70, 20}));
}

TEST(ParquetFooter, MayHaveManyGroups) {
  const auto footer =
      parse_footer(make_footer(400, std::vector<std::vector<uint8_t>>(200, make_group(2, 1))));
  ASSERT_TRUE(footer);
  EXPECT_EQ(footer->rows.size(), 200);
}

TEST(ParquetFooter, WithoutGroupsHasNoRows) {
  ASSERT_TRUE(parse_footer(make_footer(0, {})));
  EXPECT_FALSE(parse_footer(make_footer(1, {})));
}

TEST(ParquetFooter, SchemasDifferByColumnsAndByWhatArrowAdds) {
  const auto make = [](const std::string& column, const std::string& key) {
    FooterWriter writer = begin_footer(column);
    writer.int64(1, 0).list(1, 0, kWireStruct).list(1, 1, kWireStruct);
    writer.field(1, kWireBinary).text(key).field(1, kWireBinary).text("value").stop();
    return parse_footer(writer.stop().bytes())->schema;
  };
  EXPECT_EQ(make("x", "ARROW:schema"), make("x", "ARROW:schema"));
  EXPECT_EQ(make("x", "writer.run"), make("x", "another.key"));
  EXPECT_NE(make("x", "ARROW:schema"), make("x", "pandas"));
  EXPECT_NE(make("x", "ARROW:schema"), make("x", "writer.run"));
  EXPECT_NE(make("x", "pandas"), make("y", "pandas"));
}

TEST(ParquetFooter, RefusesNumbersThatContradictEachOther) {
  EXPECT_FALSE(parse_footer(make_footer(11, {make_group(7, 70), make_group(3, 20)})));
  EXPECT_FALSE(parse_footer(make_footer(-2, {make_group(-2, 70)})));
  EXPECT_FALSE(parse_footer(make_footer(7, {make_group(7, -1)})));
  EXPECT_FALSE(parse_footer(make_footer(-2, {make_group(INT64_MAX, 1), make_group(INT64_MAX, 1)})));
}

TEST(ParquetFooter, RefusesColumnsWithOtherNumbersOfValues) {
  EXPECT_TRUE(parse_footer(make_footer(7, {make_group(7, 70, false, 7)})));
  EXPECT_FALSE(parse_footer(make_footer(7, {make_group(7, 70, false, 6)})));
  EXPECT_FALSE(parse_footer(make_footer(7, {make_group(7, 70, false, 8)})));
  EXPECT_FALSE(parse_footer(make_footer(0, {make_group(0, 70, false, 8)})));
  EXPECT_TRUE(parse_footer(make_footer(7, {make_group(7, 70, false, 8)}, 2)));
  EXPECT_FALSE(parse_footer(make_footer(7, {make_group(7, 70, false, 6)}, 2)));
}

TEST(ParquetFooter, RefusesColumnsOfAnotherTypeThanTheSchema) {
  EXPECT_TRUE(parse_footer(make_footer(7, {make_group(7, 70, false, 7, 1)})));
  EXPECT_FALSE(parse_footer(make_footer(7, {make_group(7, 70, false, 7, 2)})));
}

TEST(ParquetFooter, RefusesColumnsOfAnotherFile) {
  EXPECT_FALSE(parse_footer(make_footer(7, {make_group(7, 70, true)})));
}

/// Whether pyarrow can show the column of a footer: then the core reads the footer too.
bool is_sound(int64_t repetition, const FooterWriter& more, int64_t codec = 0) {
  const std::vector<uint8_t> group = make_group(7, 70, false, 7, 1, codec, more);
  const std::vector<uint8_t> footer = make_footer(7, {group}, repetition);
  EXPECT_EQ(is_sound(footer), parse_footer(footer).has_value());
  return is_sound(footer);
}

TEST(ParquetFooter, RefusesHistogramsOfOtherLevels) {
  // of `repetitions` and `definitions` numbers
  const auto fits = [](int64_t repetition, size_t repetitions, size_t definitions) {
    FooterWriter sizes;
    sizes.field(7, kWireStruct).list(2, repetitions, kWireInt64);
    for (size_t i = 0; i < repetitions; ++i) sizes.number(3);
    sizes.list(1, definitions, kWireInt64);
    for (size_t i = 0; i < definitions; ++i) sizes.number(3);
    return is_sound(repetition, sizes.stop());
  };
  enum : int64_t { kRequired, kOptional, kRepeated };
  for (const int64_t repetition : {kRequired, kOptional, kRepeated}) {
    const size_t repetitions = repetition == kRepeated ? 2 : 1;
    const size_t definitions = repetition == kRequired ? 1 : 2;
    for (size_t i = 0; i < 20; ++i) {
      EXPECT_EQ(fits(repetition, i, definitions), i == 0 || i == repetitions) << repetition << i;
      EXPECT_EQ(fits(repetition, repetitions, i), i == 0 || i == definitions) << repetition << i;
    }
  }
}

TEST(ParquetFooter, RefusesTheBytesOfTextsForNumbers) {
  EXPECT_TRUE(is_sound(1, FooterWriter().field(7, kWireStruct).stop()));
  EXPECT_FALSE(is_sound(1, FooterWriter().field(7, kWireStruct).int64(1, 9).stop()));
}

TEST(ParquetFooter, RefusesBoundsThatAreTooShort) {
  for (const int field : {1, 2, 5, 6}) {
    for (size_t size = 0; size < 6; ++size) {
      FooterWriter bounds;
      bounds.field(3, kWireStruct).field(field, kWireBinary).text(std::string(size, 'x')).stop();
      EXPECT_EQ(is_sound(1, bounds), size == 0 || size >= 4) << field << size;
    }
  }
}

TEST(ParquetFooter, RefusesUnknownCodecs) {
  for (int64_t codec = -2; codec < 10; ++codec) {
    EXPECT_EQ(is_sound(1, {}, codec), codec >= 0 && codec <= 7) << codec;
  }
}

TEST(ParquetFooter, RefusesAnEncryptedColumn) {
  const std::vector<uint8_t> group = make_group(7, 70);
  const std::vector<uint8_t> whole = make_footer(7, {group});
  EXPECT_TRUE(is_sound(whole));
  FooterWriter encrypted;  // with crypto_metadata behind meta_data
  encrypted.append({group.begin(), group.end() - 7}).field(5, kWireStruct).stop();
  encrypted.append({group.end() - 7, group.end()});
  EXPECT_FALSE(is_sound(make_footer(7, {encrypted.bytes()})));
}

TEST(ParquetFooter, IsSoundThoughItsRowsAreUnknown) {
  for (const auto& footer :
       {make_footer(11, {make_group(7, 70)}), make_footer(7, {make_group(7, 70, false, 8)}),
        make_footer(7, {make_group(7, 70, true)})}) {
    EXPECT_FALSE(parse_footer(footer));
    EXPECT_TRUE(is_sound(footer));
  }
  EXPECT_FALSE(is_sound(make_footer(7, {make_group(7, 70, true, 7, 2)})));
}

TEST(ParquetFooter, RefusesAFieldOfAnotherType) {
  const std::vector<uint8_t> whole = make_footer(7, {make_group(7, 70)});
  int refused = 0;
  for (size_t i = 0; i < whole.size(); ++i) {
    std::vector<uint8_t> changed = whole;
    changed[i] ^= 3;  // i32 and i64, binary and the types behind list
    refused += parse_footer(changed) ? 0 : 1;
  }
  EXPECT_GT(refused, 30);  // the names and the sizes may be others
}

TEST(ParquetFooter, RefusesEncryption) {
  FooterWriter writer = begin_footer();
  writer.int64(1, 0).list(1, 0, kWireStruct).field(4, kWireStruct).stop();
  const std::vector<uint8_t> footer = writer.stop().bytes();
  EXPECT_FALSE(parse_footer(footer));
  EXPECT_FALSE(arrowdl::is_sound_parquet_footer(footer.data(), footer.size()).has_value());
}

TEST(ParquetFooter, RefusesEachBeginningOfIt) {
  const std::vector<uint8_t> whole = make_footer(10, {make_group(7, 70), make_group(3, 20)});
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(parse_parquet_footer(whole.data(), size)) << size;
    EXPECT_EQ(arrowdl::is_sound_parquet_footer(whole.data(), size), false) << size;
  }
}

TEST(ParquetFooter, RefusesSizesBeyondItsEnd) {
  FooterWriter list = begin_footer();
  list.int64(1, 0).field(1, 9).byte(0xf0 | kWireStruct).varint(UINT64_MAX);
  EXPECT_FALSE(parse_footer(list.bytes()));
  FooterWriter text;
  text.field(6, kWireBinary).varint(uint64_t{1} << 60).stop();
  EXPECT_FALSE(parse_footer(text.bytes()));
  FooterWriter varint;
  varint.field(1, kWireInt32);
  for (int i = 0; i < 11; ++i) varint.byte(0xff);
  EXPECT_FALSE(parse_footer(varint.bytes()));
}

TEST(ParquetFooter, RefusesNestingWithoutEnd) {
  FooterWriter writer;
  for (int i = 0; i < 100'000; ++i) writer.field(1, kWireStruct);
  EXPECT_FALSE(parse_footer(writer.bytes()));
}

TEST(ReadParquetFooter, ReturnsNothingForWhatIsNoFile) {
  size_t guess = 64;
  EXPECT_FALSE(arrowdl::read_parquet_footer("/nowhere/a.parquet", &guess));
  EXPECT_FALSE(arrowdl::read_parquet_footer("/tmp", &guess));
}

TEST(ReadParquetFooter, ReadsAFooterThatIsLongerThanTheGuess) {
  const std::vector<uint8_t> footer = make_footer(7, {make_group(7, 70)});
  const std::string path = ::testing::TempDir() + "arrowdl_guess.parquet";
  const uint32_t length = static_cast<uint32_t>(footer.size());
  std::ofstream(path, std::ios::binary)
      .write("PAR1", 4)
      .write(reinterpret_cast<const char*>(footer.data()), length)
      .write(reinterpret_cast<const char*>(&length), 4)
      .write("PAR1", 4);
  for (const size_t first : {size_t{8}, footer.size() + 7, footer.size() + 8, size_t{1} << 20}) {
    size_t guess = first;
    const std::optional<ParquetFooter> read = arrowdl::read_parquet_footer(path.c_str(), &guess);
    ASSERT_TRUE(read) << first;
    EXPECT_EQ(read->rows, std::vector<int64_t>{7});
    EXPECT_EQ(read->stamp.front(), length + 12);
    EXPECT_EQ(read->stamp, arrowdl::take_file_stamp(path.c_str()));
    EXPECT_GE(guess, footer.size() + 8);
  }
  std::remove(path.c_str());
  EXPECT_FALSE(arrowdl::take_file_stamp(path.c_str()));
}

}  // namespace
