# MPI, for the program shortlist-mpi and the rooms of cluster/ alone. The library, the command and the Python module
# never link it. MPI_C_COMPILER=mpicc.mpich takes another MPI than the default one.
set(SHORTLIST_MPI AUTO CACHE STRING "Build shortlist-mpi: AUTO (if MPI is found), ON or OFF")
set_property(CACHE SHORTLIST_MPI PROPERTY STRINGS AUTO ON OFF)

set(SL_HAVE_MPI OFF)
if(SHORTLIST_MPI AND SHORTLIST_BUILD_CLI AND NOT SHORTLIST_FUZZ)
  find_package(MPI COMPONENTS C)
  set(SL_HAVE_MPI ${MPI_C_FOUND})
  if(NOT SL_HAVE_MPI AND NOT SHORTLIST_MPI STREQUAL "AUTO")
    message(FATAL_ERROR "SHORTLIST_MPI is ON, but no MPI was found: install one (libopenmpi-dev, libmpich-dev), or name "
      "its compiler in MPI_C_COMPILER")
  endif()
endif()
