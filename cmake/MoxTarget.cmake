# mox_library(NAME [PUBLIC lib...] [PRIVATE lib...] [ALONE file...] [OPTIMISED_LITTLE] [COMPILE_OPTIONS option...]):
# one static library made of the *.cc files of this folder, a room. Without any it is a name for the libraries of PUBLIC.
#
# The room is the unit of layering: PUBLIC names our own rooms that it builds on, PRIVATE those that no header of it needs
# and third-party libraries, which must not show in a public header. ALONE: kernels that are compiled each by itself, so that a neighbour in the unity
# build does not change how their loops are optimised. OPTIMISED_LITTLE, for build time: text, options and files, whose work
# is the system's.
function(mox_compile_options target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Werror)
  # GCC 12 reports std::string's operator+ as overlapping memcpy (GCC bug 105651).
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
  # GCC 13 and later report the same under other names, wherever a unity file makes them inline it: said, but no error.
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
    target_compile_options(${target} PRIVATE
      -Wno-error=array-bounds -Wno-error=stringop-overflow -Wno-error=stringop-overread)
  endif()
  # The release build compiles several files as one (CMAKE_UNITY_BUILD), because most of a file's time is its headers.
  # So names at the top of a folder's files must differ, those in anonymous namespaces too; `debug` compiles each by itself.
  # What lies in a file's anonymous namespace is then part of an "included" file, which GCC warns about in vain.
  if(CMAKE_UNITY_BUILD)
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  endif()
  # Headers are large and memory is not scarce: collecting the compiler's garbage less often saves a tenth of its time.
  target_compile_options(${target} PRIVATE "$<$<CXX_COMPILER_ID:GNU>:SHELL:--param ggc-min-heapsize=524288>")
  # A portable binary: AVX2 + FMA for our own loops; oneDNN chooses AVX-512 or AMX kernels at run time.
  target_compile_options(${target} PRIVATE -march=x86-64-v3)
endfunction()

# The instructions that a file may use are the last words of its name: such a file is called only where the processor has them.
# GCC 12 warns about values that its own header leaves undefined on purpose (GCC bug 105593).
set(MOX_AVX512_OPTIONS -mavx512f -mavx512bw $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)

function(mox_library name)
  cmake_parse_arguments(ARG "OPTIMISED_LITTLE" "" "PUBLIC;PRIVATE;ALONE;COMPILE_OPTIONS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS *.cc internal/*.cc internal/*/*.cc lanes/*.cc)
  set_property(GLOBAL APPEND PROPERTY MOX_LIBRARIES ${name})
  if(NOT sources)  # a name for several rooms
    add_library(${name} INTERFACE)
    add_library(moxing::${name} ALIAS ${name})
    target_link_libraries(${name} INTERFACE ${ARG_PUBLIC})
    return()
  endif()
  add_library(${name} STATIC ${sources})
  add_library(moxing::${name} ALIAS ${name})
  mox_compile_options(${name})
  target_compile_options(${name} PRIVATE ${ARG_COMPILE_OPTIONS})
  if(ARG_OPTIMISED_LITTLE)
    target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  endif()
  foreach(source ${sources})
    if(source MATCHES "_avx512_bf16\\.cc$")
      set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "${MOX_AVX512_OPTIONS};-mavx512bf16")
    elseif(source MATCHES "_avx512\\.cc$")
      set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "${MOX_AVX512_OPTIONS}")
    elseif(source MATCHES "_avx2\\.cc$")
      list(APPEND ARG_ALONE ${source})
    endif()
  endforeach()
  set_source_files_properties(${ARG_ALONE} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_include_directories(${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
    $<INSTALL_INTERFACE:include/moxing-${PROJECT_VERSION}>)
  target_link_libraries(${name} PUBLIC ${ARG_PUBLIC} PRIVATE ${ARG_PRIVATE})
endfunction()

# mox_program(NAME source... ): an executable in build/bin that links the whole framework.
function(mox_program name)
  add_executable(${name} ${ARGN})
  mox_compile_options(${name})
  target_link_libraries(${name} PRIVATE moxing)
endfunction()

# mox_tests(NAME LIBS lib... [ROOMS folder...] [LABEL quick|slow] [THREADS] [INSTRUCTIONS] [COMPUTES] [TIMEOUT seconds]
# [DEPENDS target...]): the *_test.cc files of this folder as one GoogleTest program. ROOMS: those of these folders, too, for
# build time: a program of a small room's own takes seconds for its headers. THREADS: ./dev test tsan runs it under
# ThreadSanitizer, too.
# INSTRUCTIONS: of kernels, plans and programs, whose results depend on the processor's instructions: ./dev test runs it with each
# set of them that the processor has.
# COMPUTES: its own references take long where they are not optimised.
add_custom_target(mox_threads_tests)

# GoogleTest's headers take more time than most tests: they are compiled before, once for each way of compiling tests. The compiler
# refuses (-Winvalid-pch -Werror) what was made with other options than a test's own.
function(mox_test_headers name)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${name}.cc)
  file(CONFIGURE OUTPUT ${source} CONTENT "")
  add_library(${name} OBJECT ${source})
  mox_compile_options(${name})
  target_compile_options(${name} PRIVATE ${ARGN})
  target_link_libraries(${name} PRIVATE GTest::gmock)
  target_precompile_headers(${name} PRIVATE <gmock/gmock.h> <gtest/gtest.h>)
endfunction()

function(mox_tests name)
  cmake_parse_arguments(ARG "THREADS;INSTRUCTIONS;COMPUTES" "LABEL;TIMEOUT" "LIBS;ROOMS;DEPENDS" ${ARGN})
  if(NOT ARG_LABEL)
    set(ARG_LABEL quick)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  if(ARG_THREADS)
    add_dependencies(mox_threads_tests ${name})
    string(APPEND ARG_LABEL "-threads")  # one word: CTest's discovery takes no list
  endif()
  if(ARG_INSTRUCTIONS)
    string(APPEND ARG_LABEL "-instructions")
  endif()
  list(TRANSFORM ARG_ROOMS APPEND "/*_test.cc")
  file(GLOB sources CONFIGURE_DEPENDS *_test.cc ${ARG_ROOMS})
  add_executable(${name} ${sources})
  mox_compile_options(${name})
  # For build time; what is tested has its own flags.
  if(ARG_COMPUTES)
    target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
    target_precompile_headers(${name} REUSE_FROM mox_computing_test_headers)
  else()
    target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O0>)
    target_precompile_headers(${name} REUSE_FROM mox_test_headers)
  endif()
  target_link_libraries(${name} PRIVATE ${ARG_LIBS} GTest::gmock GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE MOX_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                             MOX_BINARY_DIR="${CMAKE_BINARY_DIR}")
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
  # COST: what may take longest begins first, so that no core is idle at the end of the suite.
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST
                       PROPERTIES LABELS ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT} COST ${ARG_TIMEOUT})
endfunction()
