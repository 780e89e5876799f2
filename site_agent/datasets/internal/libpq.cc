#include "site_agent/datasets/internal/libpq.h"

#include <dlfcn.h>

namespace domicile::site_agent::internal {
namespace {

template <typename Function>
bool Find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

bool FindAll(void* library, Libpq& pq) {
  return Find(library, "PQconnectdbParams", pq.connect) && Find(library, "PQfinish", pq.finish) &&
         Find(library, "PQstatus", pq.status) &&
         Find(library, "PQerrorMessage", pq.connection_error) &&
         Find(library, "PQexec", pq.execute) && Find(library, "PQsendQueryParams", pq.send_query) &&
         Find(library, "PQsetSingleRowMode", pq.one_row_at_a_time) &&
         Find(library, "PQgetResult", pq.next_result) &&
         Find(library, "PQresultStatus", pq.result_status) &&
         Find(library, "PQresultErrorField", pq.error_field) &&
         Find(library, "PQnfields", pq.num_columns) && Find(library, "PQfname", pq.column_name) &&
         Find(library, "PQntuples", pq.num_rows) && Find(library, "PQgetvalue", pq.value) &&
         Find(library, "PQgetlength", pq.length) && Find(library, "PQgetisnull", pq.is_null) &&
         Find(library, "PQclear", pq.clear);
}

}  // namespace

StatusOr<const Libpq*> LoadLibpq() {
  static Libpq functions;
  static const bool is_loaded = [] {
    void* const library = dlopen("libpq.so.5", RTLD_NOW | RTLD_LOCAL);
    return library != nullptr && FindAll(library, functions);
  }();
  if (!is_loaded) {
    return Error(StatusCode::kFailedPrecondition,
                 "libpq.so.5 is not on this host; install the client library of PostgreSQL "
                 "(Debian: libpq5)");
  }
  return &functions;
}

}  // namespace domicile::site_agent::internal
