// The lines of an export, read with bounded memory from bytes of another party.
#pragma once

#include <cstddef>
#include <cstdint>
#include <istream>
#include <string>
#include <string_view>

#include "audit/event.h"

namespace domicile::audit::internal {

enum class LineEnd : std::uint8_t {
  kEndOfFile = 0,       // there is no line
  kWhole = 1,           // ended by LF
  kCarriageReturn = 2,  // ended by CR LF; the text has the CR
  kTorn = 3,            // the file ends within it
  kTooLong = 4,     // longer than a leaf; the text is empty, and the rest of the line was skipped
  kUnreadable = 5,  // the system could not read further
};

struct Line {
  LineEnd end = LineEnd::kEndOfFile;
  std::uint64_t number = 0;  // from 0
  std::string_view text;     // without LF; valid until the next call
};

// Borrows the stream. One thread at a time.
class LineReader {
 public:
  explicit LineReader(std::istream& in) : in_(in) {}

  Line Next() {
    text_.clear();
    bool too_long = false;
    for (int c = in_.get(); c != std::istream::traits_type::eof(); c = in_.get()) {
      if (c == '\n') {
        const bool carriage = !text_.empty() && text_.back() == '\r';
        return Make(too_long   ? LineEnd::kTooLong
                    : carriage ? LineEnd::kCarriageReturn
                               : LineEnd::kWhole);
      }
      too_long = too_long || text_.size() >= kLongestLeaf;
      if (!too_long) {
        text_ += static_cast<char>(c);
      }
    }
    if (in_.bad()) {
      return Make(LineEnd::kUnreadable);
    }
    return Make(text_.empty() ? LineEnd::kEndOfFile : LineEnd::kTorn);
  }

 private:
  Line Make(LineEnd end) {
    return {.end = end,
            .number = number_++,
            .text = end == LineEnd::kTooLong ? std::string_view() : std::string_view(text_)};
  }

  std::istream& in_;
  std::string text_;
  std::uint64_t number_ = 0;
};

}  // namespace domicile::audit::internal
