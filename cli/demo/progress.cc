#include "cli/demo/progress.h"

#include <algorithm>
#include <iomanip>
#include <ostream>
#include <sstream>

namespace domicile::cli {

namespace {

constexpr std::size_t kBarCells = 20;
constexpr std::uint32_t kPrintEvery = 10;

}  // namespace

std::string Progress::Line(const v1::WatchJobResponse& event) const {
  // The round whose sum has just been committed, though a phase of it may still follow.
  const std::uint32_t done = std::max(event.summary().rounds_committed(),
                                      event.has_metrics() ? event.metrics().round() : 0);
  const std::uint32_t planned = event.summary().rounds_planned();
  const std::size_t cells = planned == 0 ? 0 : kBarCells * done / planned;
  std::ostringstream line;
  line << "  [" << std::string(cells, '#') << std::string(kBarCells - cells, '.') << "] round "
       << std::setw(2) << done << "/" << planned;
  if (!loss_.empty()) {
    line << "  training loss " << loss_.substr(0, 6);
  }
  for (const v1::SiteState& site : event.sites()) {
    // A mark for each site: + its update is in, . it works on it, ! it has declined, - it is away.
    const char* mark = !site.connected()                     ? "-"
                       : site.received()                     ? "+"
                       : site.answer() == v1::ANSWER_DECLINE ? "!"
                                                             : ".";
    line << "  " << site.site() << mark;
  }
  return line.str();
}

void Progress::Show(const v1::WatchJobResponse& event) {
  if (event.has_metrics() && !event.metrics().loss().empty() &&
      event.metrics().phase() == v1::PHASE_KIND_TRAIN) {
    loss_ = event.metrics().loss();
  }
  if (event.summary().state() == v1::JOB_STATE_WAITING && !told_approvals_) {
    out_ << "Each site's operator signs the grant for this plan ...\n";
    told_approvals_ = true;
  }
  if (is_terminal_) {
    out_ << "\r\x1b[K" << Line(event) << std::flush;
  } else if (event.has_metrics() && event.metrics().phase() == v1::PHASE_KIND_TRAIN &&
             (event.metrics().round() % kPrintEvery == 0 || event.metrics().round() == 1)) {
    out_ << Line(event) << "\n" << std::flush;
  }
}

void Progress::Finish() {
  if (is_terminal_) {
    out_ << "\n";
  }
}

}  // namespace domicile::cli
