// libpq, loaded when a snapshot is taken and only then: a trainer links nothing that can speak to a
// network, and runs where the library is not. The header is there for its types.
#pragma once

#include <memory>

#include <postgresql/libpq-fe.h>

#include "base/status.h"

namespace domicile::site_agent::internal {

// The functions that a snapshot needs. Immutable.
struct Libpq {
  decltype(&PQconnectdbParams) connect = nullptr;
  decltype(&PQfinish) finish = nullptr;
  decltype(&PQstatus) status = nullptr;
  decltype(&PQerrorMessage) connection_error = nullptr;
  decltype(&PQexec) execute = nullptr;
  decltype(&PQsendQueryParams) send_query = nullptr;
  decltype(&PQsetSingleRowMode) one_row_at_a_time = nullptr;
  decltype(&PQgetResult) next_result = nullptr;
  decltype(&PQresultStatus) result_status = nullptr;
  decltype(&PQresultErrorField) error_field = nullptr;
  decltype(&PQnfields) num_columns = nullptr;
  decltype(&PQfname) column_name = nullptr;
  decltype(&PQntuples) num_rows = nullptr;
  decltype(&PQgetvalue) value = nullptr;
  decltype(&PQgetlength) length = nullptr;
  decltype(&PQgetisnull) is_null = nullptr;
  decltype(&PQclear) clear = nullptr;
};

// Stays loaded. Errors: kFailedPrecondition, naming the package.
StatusOr<const Libpq*> LoadLibpq();

}  // namespace domicile::site_agent::internal
