# libnuma, for placement on machines of several memory nodes. Without it a NUMA policy is unsupported; all else works.
set(SHORTLIST_NUMA AUTO CACHE STRING "Build with libnuma: AUTO (where it is found), ON or OFF")
set_property(CACHE SHORTLIST_NUMA PROPERTY STRINGS AUTO ON OFF)

find_path(SL_NUMA_INCLUDE numaif.h)
find_library(SL_NUMA_LIBRARY numa)
mark_as_advanced(SL_NUMA_INCLUDE SL_NUMA_LIBRARY)

set(SL_HAVE_NUMA OFF)
if(SHORTLIST_NUMA AND SL_NUMA_INCLUDE AND SL_NUMA_LIBRARY)
  set(SL_HAVE_NUMA ON)
elseif(SHORTLIST_NUMA AND NOT SHORTLIST_NUMA STREQUAL "AUTO")
  message(FATAL_ERROR "SHORTLIST_NUMA is ON, but libnuma (libnuma-dev) was not found: install it, or name its prefix "
    "in CMAKE_PREFIX_PATH")
endif()

# Definition, include folder and library of libnuma, for one target; `scope` is PRIVATE or PUBLIC.
function(sl_use_numa target scope)
  if(SL_HAVE_NUMA)
    target_compile_definitions(${target} ${scope} SL_HAVE_NUMA)
    target_include_directories(${target} SYSTEM ${scope} $<BUILD_INTERFACE:${SL_NUMA_INCLUDE}>)
    target_link_libraries(${target} ${scope} ${SL_NUMA_LIBRARY})
  endif()
endfunction()
