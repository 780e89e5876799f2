# How every target of this project is made. See style: one library per folder that holds sources,
# sources listed, headers in a file set that `tidy` compiles one by one.
option(DOMICILE_WERROR "Treat warnings as errors" ON)
option(DOMICILE_LIBFUZZER "Link fuzz targets with libFuzzer (clang only)" OFF)
set(DOMICILE_SANITIZE "" CACHE STRING "Value for -fsanitize=, or empty")

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

add_library(domicile_flags INTERFACE)
target_compile_options(domicile_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor -Wold-style-cast
  $<$<BOOL:${DOMICILE_WERROR}>:-Werror>
  # g++ 12 reports a false overlap in "literal" + std::string (GCC bug 105651).
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
  $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety>)
target_include_directories(domicile_flags INTERFACE "${PROJECT_SOURCE_DIR}")
if(DOMICILE_SANITIZE)
  add_compile_options(-fsanitize=${DOMICILE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${DOMICILE_SANITIZE})
endif()

# `programs`: what a person runs. `generated`: sources made at build time, which tidy needs first.
add_custom_target(programs)
add_custom_target(generated)

# doctest's main is compiled once.
add_library(domicile_doctest_main STATIC "${PROJECT_SOURCE_DIR}/tests/support/doctest_main.cc")
target_link_libraries(domicile_doctest_main PUBLIC doctest::doctest PRIVATE domicile_flags)

# domicile_test(NAME SOURCES... [DEPENDS...] [LABELS...]): one doctest program, one ctest entry.
# DOMICILE_SOURCE_DIR and DOMICILE_BINARY_DIR tell a test where golden files and programs are.
function(domicile_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TIMEOUT" "SOURCES;DEPENDS;LABELS")
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 60)
  endif()
  if(NOT arg_LABELS)
    set(arg_LABELS unit)
  endif()
  set(draws "seed=20261130")
  if(DOMICILE_SANITIZE)  # each step takes many times longer, and other faults are looked for
    math(EXPR arg_TIMEOUT "${arg_TIMEOUT} * 5")
    string(APPEND draws " max_success=20")
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_DEPENDS} domicile_doctest_main domicile_flags)
  target_compile_definitions(${name} PRIVATE
    DOMICILE_SOURCE_DIR="${PROJECT_SOURCE_DIR}" DOMICILE_BINARY_DIR="${CMAKE_BINARY_DIR}")
  # What a test spends its time in is the library; its own assertions at -O3 cost a third more to compile.
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  add_test(NAME ${name} COMMAND ${name})
  # Property tests draw the same cases on every run: a failure can be repeated. For others, run the
  # program by hand: rapidcheck then takes a seed of its own and prints it.
  set_tests_properties(${name} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT}
    ENVIRONMENT "RC_PARAMS=${draws}")
endfunction()

# domicile_library(NAME HEADERS... SOURCES... [DEPENDS...] [PRIVATE_DEPENDS...] [TESTS...]
#                  [TEST_DEPENDS...] [TEST_LABELS...] [TEST_TIMEOUT seconds])
# DEPENDS are those a header needs. Third-party targets go in as they are (their headers are SYSTEM).
function(domicile_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TEST_TIMEOUT"
    "HEADERS;SOURCES;DEPENDS;PRIVATE_DEPENDS;TESTS;TEST_DEPENDS;TEST_LABELS")
  add_library(domicile_${name} STATIC ${arg_SOURCES})
  add_library(domicile::${name} ALIAS domicile_${name})
  target_sources(domicile_${name} PUBLIC
    FILE_SET HEADERS BASE_DIRS "${PROJECT_SOURCE_DIR}" FILES ${arg_HEADERS})
  set_target_properties(domicile_${name} PROPERTIES VERIFY_INTERFACE_HEADER_SETS ON)
  target_link_libraries(domicile_${name} PUBLIC ${arg_DEPENDS} PRIVATE ${arg_PRIVATE_DEPENDS} domicile_flags)
  if(arg_TESTS AND BUILD_TESTING)
    domicile_test(${name}_test SOURCES ${arg_TESTS}
      DEPENDS domicile_${name} ${arg_PRIVATE_DEPENDS} ${arg_TEST_DEPENDS} LABELS ${arg_TEST_LABELS}
      TIMEOUT ${arg_TEST_TIMEOUT})
  endif()
endfunction()

# domicile_program(NAME SOURCES... DEPENDS...): an executable in bin/.
function(domicile_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;DEPENDS")
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_DEPENDS} domicile_flags)
  target_compile_definitions(${name} PRIVATE DOMICILE_VERSION="${PROJECT_VERSION}")
  add_dependencies(programs ${name})
endfunction()

# domicile_fuzz(NAME SOURCES... DEPENDS... CORPUS DIR): a fuzz target. With DOMICILE_LIBFUZZER it is a
# fuzzer; otherwise it gets a main that replays its corpus (and every prefix of each file), as a test.
function(domicile_fuzz name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "CORPUS" "SOURCES;DEPENDS")
  if(DOMICILE_LIBFUZZER)
    add_executable(${name} ${arg_SOURCES})
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    target_link_libraries(${name} PRIVATE ${arg_DEPENDS} domicile_flags)
  else()
    add_executable(${name} ${arg_SOURCES} "${PROJECT_SOURCE_DIR}/tests/fuzz/replay_main.cc")
    target_link_libraries(${name} PRIVATE ${arg_DEPENDS} domicile_flags)
    add_test(NAME ${name} COMMAND ${name} "${arg_CORPUS}")
    set(timeout 60)
    if(DOMICILE_SANITIZE)
      set(timeout 300)
    endif()
    set_tests_properties(${name} PROPERTIES LABELS "unit;fuzz" TIMEOUT ${timeout})
  endif()
endfunction()
