# How every C file of the project is compiled.

# Warnings, the language and hidden symbols, for one target. Floating-point expressions are not contracted. Plain C then
# gives the same bits with every compiler and on every machine. Kernels ask for fused operations by name.
function(sl_compile target)
  target_compile_features(${target} PRIVATE c_std_11)
  set_target_properties(${target} PROPERTIES C_EXTENSIONS OFF C_VISIBILITY_PRESET hidden)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wconversion -ffp-contract=off)
  if(NOT OpenMP_C_FOUND)
    # Left out on purpose: the pragmas then mean nothing, and the code runs on one thread. A thread count that only a
    # pragma names is unused.
    target_compile_options(${target} PRIVATE -Wno-unknown-pragmas -Wno-unused-variable)
  endif()
  if(SHORTLIST_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
endfunction()

# A compiler cache, unless the user names a launcher.
if(SHORTLIST_CCACHE)
  find_program(SL_CCACHE ccache)
  mark_as_advanced(SL_CCACHE)
  foreach(language C CXX)
    if(SL_CCACHE AND NOT CMAKE_${language}_COMPILER_LAUNCHER)
      set(CMAKE_${language}_COMPILER_LAUNCHER ${SL_CCACHE})
    endif()
  endforeach()
endif()

if(SHORTLIST_SANITIZE)
  if(NOT SHORTLIST_SANITIZE MATCHES "^(address|thread)$")
    message(FATAL_ERROR "SHORTLIST_SANITIZE is '${SHORTLIST_SANITIZE}'; it takes address or thread")
  endif()
  if(SHORTLIST_SANITIZE STREQUAL "thread" AND NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
    message(WARNING "Only clang's OpenMP runtime tells the thread sanitizer of its barriers: expect false reports")
  endif()
  # These go together, and one build and one run of the tests serve all.
  string(REPLACE address address,undefined,float-cast-overflow SL_SANITIZERS ${SHORTLIST_SANITIZE})
  # Reports need the lines alone of what a debugger knows.
  add_compile_options(-fsanitize=${SL_SANITIZERS} -fno-sanitize-recover=all -fno-omit-frame-pointer -g1)
  if(SHORTLIST_SANITIZE STREQUAL "address")
    # The address sanitizer also sees accesses by bad pointers. The fuzz targets have these checks.
    add_compile_options(-fno-sanitize=null,object-size,pointer-overflow)
  endif()
  add_link_options(-fsanitize=${SL_SANITIZERS})
endif()

if(SHORTLIST_FUZZ)
  if(NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "SHORTLIST_FUZZ needs clang, which has libFuzzer: configure with -DCMAKE_C_COMPILER=clang")
  endif()
  set(SHORTLIST_FUZZ_FLAGS -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer -g1)
  add_compile_options(-fsanitize=fuzzer-no-link ${SHORTLIST_FUZZ_FLAGS})
  add_link_options(${SHORTLIST_FUZZ_FLAGS})
endif()
