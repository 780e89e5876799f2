#include "base/json.h"

#include <string>

#include <doctest/doctest.h>

namespace domicile {
namespace {

std::string MessageOf(const Status& status) { return std::string(Message(status)); }

TEST_CASE("PrintJson: the order of keys in RFC 8785 section 3.2.3 is that of UTF-16") {
  const std::string text = R"({"\u20ac":"Euro Sign","\r":"Carriage Return",)"
                           R"("\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One",)"
                           R"("\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control",)"
                           R"("\u00f6":"Latin Small Letter O With Diaeresis"})";

  const StatusOr<Json> json = ParseJson(text);

  REQUIRE(json.ok());
  // The emoji (U+1F600, first unit D83D) comes before U+FB33, although its UTF-8 bytes are greater.
  CHECK(PrintJson(*json) ==
        "{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\xC2\x80\":\"Control\","
        "\"\xC3\xB6\":\"Latin Small Letter O With Diaeresis\",\"\xE2\x82\xAC\":\"Euro Sign\","
        "\"\xF0\x9F\x98\x80\":\"Emoji: Grinning Face\","
        "\"\xEF\xAC\xB3\":\"Hebrew Letter Dalet With Dagesh\"}");
}

TEST_CASE("PrintJson: the string and literals of RFC 8785 section 3.2.2") {
  const StatusOr<Json> json = ParseJson(
      R"({ "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
           "literals": [true, false] })");

  REQUIRE(json.ok());
  CHECK(PrintJson(*json) ==
        "{\"literals\":[true,false],\"string\":\"\xE2\x82\xAC$\\u000f\\nA'B"
        "\\\"\\\\\\\\\\\"/\"}");
}

TEST_CASE("PrintJson: short escapes where there are some, lower-case \\u00xx elsewhere") {
  CHECK(PrintJson(Json("\b\f\n\r\t\"\\/\x01\x1f\x7f")) ==
        "\"\\b\\f\\n\\r\\t\\\"\\\\/\\u0001\\u001f\x7f\"");
}

TEST_CASE("ParseJson: what the subset does not have is refused") {
  struct Case {
    std::string name;
    std::string text;
  };
  const Case cases[] = {
      {"null", "null"},
      {"null inside", R"({"a":null})"},
      {"fraction", "1.5"},
      {"whole number written as a fraction", "1.0"},
      {"exponent", "1e2"},
      {"above 2^53 - 1", "9007199254740992"},
      {"below -(2^53 - 1)", "-9007199254740992"},
      {"beyond 64 bits", "18446744073709551616"},
      {"duplicate key", R"({"a":1,"a":1})"},
      {"duplicate key, other spelling", R"({"a":1,"\u0061":1})"},
      {"leading zero", "01"},
      {"plus sign", "+1"},
      {"NaN", "NaN"},
      {"comment", "{}//"},
      {"trailing comma", "[1,]"},
      {"single quotes", "{'a':1}"},
      {"bare key", "{a:1}"},
      {"text behind", "{} {}"},
      {"nothing", ""},
      {"blank", "  "},
      {"cut", R"({"a":)"},
      {"zero byte behind", std::string("{}\0x", 4)},
      {"zero byte inside a string", std::string("\"a\0b\"", 5)},
      {"byte order mark", "\xEF\xBB\xBF{}"},
      {"control character in a string", "\"a\nb\""},
      {"invalid UTF-8", "\"\xC3(\""},
      {"overlong UTF-8", "\"\xC0\xAF\""},
      {"surrogate in UTF-8", "\"\xED\xA0\x80\""},
      {"unpaired high surrogate", R"("\ud800")"},
      {"unpaired low surrogate", R"("\udc00")"},
      {"65 levels", std::string(65, '[') + std::string(65, ']')},
      {"a million levels", std::string(1'000'000, '[')},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    CHECK(ParseJson(c.text).status().code() == StatusCode::kInvalidArgument);
  }
}

TEST_CASE("ParseJson: the ends of the subset are in it") {
  CHECK(*ParseJson("9007199254740991")->TryInt() == kLargestJsonInteger);
  CHECK(*ParseJson("-9007199254740991")->TryInt() == -kLargestJsonInteger);
  CHECK(ParseJson(std::string(64, '[') + std::string(64, ']')).ok());
  CHECK(ParseJson(" { } \n").ok());
  CHECK(*ParseJson("\"\"")->TryString() == "");
}

TEST_CASE("ParseJson: an error gives the place and never the text") {
  const Status duplicate = ParseJson(R"({"sentinel":"QX-7731","sentinel":2})").status();
  const Status broken = ParseJson(R"({"a":"QX-7731",,})").status();
  const Status fraction = ParseJson(R"([1,2,QX)").status();

  CHECK(MessageOf(duplicate) == "a duplicate key at byte 32");
  CHECK(MessageOf(broken).find("not valid JSON at byte 1") == 0);
  for (const Status& status : {duplicate, broken, fraction}) {
    CHECK(MessageOf(status).find("QX") == std::string::npos);
  }
}

TEST_CASE("ParseJson: a list of 200 000 items takes no quadratic time") {
  std::string text = "[0";
  for (int i = 1; i < 200'000; ++i) {
    text += ",\"an item that is longer than any short string\"";
  }
  text += "]";

  const StatusOr<Json> json = ParseJson(text);

  REQUIRE(json.ok());
  CHECK(json->TryArray()->size() == 200'000);
  CHECK(PrintJson(*json) == text);
}

TEST_CASE("ParseCanonicalJson: only the one spelling of a value") {
  CHECK(ParseCanonicalJson(R"({"a":1,"b":[true,"x"]})").ok());

  for (const char* other : {R"({"b":1,"a":1})", R"({"a": 1})", R"({"a":"\u0061"})", R"({"a":1} )",
                            R"({"a":"\/"})", "-0"}) {
    CAPTURE(other);
    CHECK(ParseJson(other).ok());
    CHECK(ParseCanonicalJson(other).status().code() == StatusCode::kInvalidArgument);
  }
}

TEST_CASE("JsonReader: reads a closed object") {
  const Json json = *ParseJson(
      R"({"flag":true,"list":["a","b"],"name":"x","numbers":[1,2],"object":{"v":1},"size":3})");
  JsonReader reader(json, "thing");

  CHECK(reader.Bool("flag"));
  CHECK(reader.Strings("list") == std::vector<std::string>{"a", "b"});
  CHECK(reader.Ints("numbers", 1, 2) == std::vector<std::int64_t>{1, 2});
  CHECK(reader.String("name") == "x");
  CHECK(reader.Int("size", 0, 3) == 3);
  CHECK(*reader.Object("object").Find("v")->TryInt() == 1);
  CHECK_FALSE(reader.TryString("absent").has_value());
  CHECK_FALSE(reader.TryInt("absent_too", 0, 1).has_value());
  CHECK(reader.TryObject("nor_this") == nullptr);
  CHECK(reader.Finish().ok());
}

TEST_CASE("JsonReader: the first error names the field and what it must be") {
  struct Case {
    std::string name;
    void (*read)(JsonReader&);
    const char* want;
  };
  const Case cases[] = {
      {"missing", [](JsonReader& r) { r.String("nam"); }, "`thing.nam` is missing"},
      {"mistyped", [](JsonReader& r) { r.String("size"); }, "`thing.size` must be a string"},
      {"too large", [](JsonReader& r) { r.Int("size", 0, 2); },
       "`thing.size` must be a whole number from 0 to 2"},
      {"no number", [](JsonReader& r) { r.TryInt("name", 0, 2); },
       "`thing.name` must be a whole number from 0 to 2"},
      {"no bool", [](JsonReader& r) { r.Bool("name"); }, "`thing.name` must be true or false"},
      {"no list", [](JsonReader& r) { r.Strings("name"); }, "`thing.name` must be a list"},
      {"mixed list", [](JsonReader& r) { r.Strings("list"); },
       "`thing.list` must be a list of strings"},
      {"no numbers", [](JsonReader& r) { r.Ints("list", 0, 9); },
       "`thing.list` must be a list of whole numbers from 0 to 9"},
      {"no object", [](JsonReader& r) { r.Object("name"); }, "`thing.name` must be an object"},
      {"first of two",
       [](JsonReader& r) {
         r.Bool("name");
         r.String("absent");
       },
       "`thing.name` must be true or false"},
      {"noted", [](JsonReader& r) { r.Fail("size", "is odd"); }, "`thing.size` is odd"},
      {"merged", [](JsonReader& r) { r.Merge(Error(StatusCode::kInvalidArgument, "inner")); },
       "thing: inner"},
  };
  const Json json = *ParseJson(R"({"list":["a",1],"name":"x","size":3})");
  for (const Case& c : cases) {
    CAPTURE(c.name);
    JsonReader reader(json, "thing");
    c.read(reader);
    CHECK(MessageOf(reader.Finish()) == c.want);
  }
}

TEST_CASE("JsonReader: an unknown key is an error, with the nearest known spelling") {
  const Json json = *ParseJson(R"({"name":"x","sise":3})");
  JsonReader reader(json, "thing");
  reader.String("name");
  reader.TryInt("size", 0, 9);

  CHECK(MessageOf(reader.Finish()) == "`thing` has an unknown key `sise` (did you mean `size`?)");
}

TEST_CASE("JsonReader: what is no object is an error, whatever is asked") {
  const Json json = *ParseJson("[1]");
  JsonReader reader(json, "thing");

  CHECK(reader.String("name").empty());
  CHECK(reader.Array("list").empty());
  CHECK(reader.Object("object").TryObject()->empty());
  CHECK(MessageOf(reader.Finish()) == "`thing` must be an object");
}

}  // namespace
}  // namespace domicile
