// The demo's live picture of a job: the round, its loss, who has answered.
#pragma once

#include <iosfwd>
#include <string>

#include "wire/proto/admin.pb.h"

namespace domicile::cli {

// One thread at a time.
class Progress {
 public:
  // On a terminal one line is drawn over; elsewhere a line is printed every tenth round.
  Progress(std::ostream& out, bool is_terminal) : out_(out), is_terminal_(is_terminal) {}

  void Show(const v1::WatchJobResponse& event);
  void Finish();

 private:
  std::string Line(const v1::WatchJobResponse& event) const;

  std::ostream& out_;
  const bool is_terminal_;
  std::string loss_;
  bool told_approvals_ = false;
};

}  // namespace domicile::cli
