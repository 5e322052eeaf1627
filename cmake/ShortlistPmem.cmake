# libpmem, for indexes in persistent memory. Without it such a file is mapped all the same, and written by way of its log.
set(SHORTLIST_PMEM AUTO CACHE STRING "Build with libpmem: AUTO (where it is found), ON or OFF")
set_property(CACHE SHORTLIST_PMEM PROPERTY STRINGS AUTO ON OFF)

find_path(SL_PMEM_INCLUDE libpmem.h)
find_library(SL_PMEM_LIBRARY pmem)
mark_as_advanced(SL_PMEM_INCLUDE SL_PMEM_LIBRARY)

set(SL_HAVE_PMEM OFF)
if(SHORTLIST_PMEM AND SL_PMEM_INCLUDE AND SL_PMEM_LIBRARY)
  set(SL_HAVE_PMEM ON)
elseif(SHORTLIST_PMEM AND NOT SHORTLIST_PMEM STREQUAL "AUTO")
  message(FATAL_ERROR "SHORTLIST_PMEM is ON, but libpmem (libpmem-dev) was not found: install it, or name its prefix "
    "in CMAKE_PREFIX_PATH")
endif()

# Definition, include folder and library of libpmem, for one target; `scope` is PRIVATE or PUBLIC.
function(sl_use_pmem target scope)
  if(SL_HAVE_PMEM)
    target_compile_definitions(${target} ${scope} SL_HAVE_PMEM)
    target_include_directories(${target} SYSTEM ${scope} $<BUILD_INTERFACE:${SL_PMEM_INCLUDE}>)
    target_link_libraries(${target} ${scope} ${SL_PMEM_LIBRARY})
  endif()
endfunction()
