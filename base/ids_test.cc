#include "base/ids.h"

#include <string>
#include <type_traits>

#include <doctest/doctest.h>

namespace domicile {
namespace {

static_assert(!std::is_convertible_v<SiteId, JobId>, "kinds of names must not mix");
static_assert(!std::is_constructible_v<SiteId, std::string>, "a name comes from Parse alone");

TEST_CASE("Name: lower-case letters, digits and inner hyphens, 1 to 63") {
  for (const std::string& good : {std::string("a"), std::string("zurich-basel"), std::string("0"),
                                  std::string("a--b"), std::string(63, 'x')}) {
    CAPTURE(good);
    CHECK(SiteId::Parse(good).value().text() == good);
  }
  // The last two are Cyrillic and a full-width digit that look like ASCII.
  for (const std::string& bad :
       {std::string(), std::string("-a"), std::string("a-"), std::string("A"), std::string("a b"),
        std::string("a.b"), std::string("a/b"), std::string(64, 'x'), std::string("a\0b", 3),
        std::string("a\n"), std::string("\xD0\xB0"), std::string("\xEF\xBC\x91")}) {
    CAPTURE(bad);
    CHECK(SiteId::Parse(bad).status().code() == StatusCode::kInvalidArgument);
  }
}

TEST_CASE("Name: an error says which kind of name was wanted, and shows invisible bytes") {
  const auto message = [](const Status& status) { return std::string(Message(status)); };

  CHECK(message(SiteId::Parse("A").status()) ==
        "`A` is not a site: 1 to 63 of a-z, 0-9 and inner hyphens");
  CHECK(message(OrganisationId::Parse("\r").status()).find("`\\x0d` is not a organisation") == 0);
  CHECK(message(DatasetAlias::Parse("").status()).find("dataset alias") != std::string::npos);
  CHECK(message(JobId::Parse("").status()).find("job id") != std::string::npos);
}

TEST_CASE("Name: the default is none and sorts first") {
  CHECK(SiteId().IsNone());
  CHECK(SiteId() < SiteId::Parse("a").value());
  CHECK(SiteId::Parse("a").value() < SiteId::Parse("b").value());
  CHECK_FALSE(SiteId::Parse("a").value().IsNone());
}

TEST_CASE("Epoch: ordered by starts, then by attempt") {
  CHECK(Epoch{1, 9} < Epoch{2, 1});
  CHECK(Epoch{2, 1} < Epoch{2, 2});
  CHECK(Epoch{2, 2} == Epoch{2, 2});
}

}  // namespace
}  // namespace domicile
