# make install: headers, library, command, package config for find_package(shortlist), shortlist.pc for pkg-config.
include(CMakePackageConfigHelpers)

set(SL_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/shortlist)
install(TARGETS shortlist EXPORT shortlist-targets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  PUBLIC_HEADER DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(EXPORT shortlist-targets NAMESPACE shortlist:: DESTINATION ${SL_CMAKE_DIR})

# oneDNN, where the system has none of its own, lies beside the library under the name that the loader looks for.
set(SL_ONEDNN_LINK "")
if(SL_HAVE_ONEDNN AND SHORTLIST_BUNDLE_ONEDNN)
  install(FILES ${SL_ONEDNN_FILE} DESTINATION ${CMAKE_INSTALL_LIBDIR} RENAME ${SL_ONEDNN_SONAME})
  get_filename_component(SL_ONEDNN_LICENSES "${SL_ONEDNN_FOLDER}/../share/doc/onednn" ABSOLUTE)
  install(FILES ${SL_ONEDNN_LICENSES}/LICENSE ${SL_ONEDNN_LICENSES}/THIRD-PARTY-PROGRAMS
    DESTINATION ${CMAKE_INSTALL_DOCDIR}/onednn OPTIONAL)
  set_target_properties(shortlist PROPERTIES INSTALL_RPATH "$ORIGIN")
  set(SL_ONEDNN_LINK "\${PACKAGE_PREFIX_DIR}/${CMAKE_INSTALL_LIBDIR}/${SL_ONEDNN_SONAME}")
elseif(SL_HAVE_ONEDNN)
  if(NOT SL_ONEDNN_SYSTEM)
    set_target_properties(shortlist PROPERTIES INSTALL_RPATH "${SL_ONEDNN_FOLDER}")
  endif()
  set(SL_ONEDNN_LINK ${SL_ONEDNN_FILE})
endif()

configure_package_config_file(cmake/shortlist-config.cmake.in shortlist-config.cmake
  INSTALL_DESTINATION ${SL_CMAKE_DIR})
write_basic_package_version_file(shortlist-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/shortlist-config.cmake ${PROJECT_BINARY_DIR}/shortlist-config-version.cmake
  DESTINATION ${SL_CMAKE_DIR})

# A static library hands its own dependencies on to whoever links it.
set(SL_PC_PUBLIC_LIBS "")
if(NOT BUILD_SHARED_LIBS)
  set(SL_PC_PUBLIC_LIBS " -lm -pthread ${OpenMP_C_FLAGS}")
  if(SL_HAVE_NUMA)
    string(APPEND SL_PC_PUBLIC_LIBS " -lnuma")
  endif()
  if(SL_HAVE_PMEM)
    string(APPEND SL_PC_PUBLIC_LIBS " -lpmem")
  endif()
  if(SL_HAVE_RANKER)
    string(APPEND SL_PC_PUBLIC_LIBS " -lcjson")
  endif()
  if(SL_ONEDNN_LINK)
    string(REPLACE "PACKAGE_PREFIX_DIR" "prefix" SL_PC_ONEDNN "${SL_ONEDNN_LINK}")
    string(APPEND SL_PC_PUBLIC_LIBS " ${SL_PC_ONEDNN}")
  endif()
endif()
# Relative to the file itself, so that the prefix may be moved.
file(RELATIVE_PATH SL_PREFIX_FROM_PC ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(cmake/shortlist.pc.in shortlist.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/shortlist.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# The installed programs find the library, and oneDNN, beside them, wherever the prefix is moved.
file(RELATIVE_PATH SL_LIB_FROM_BIN ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
foreach(SL_PROGRAM shortlist_cli shortlist_mpi)
  if(TARGET ${SL_PROGRAM})
    set_target_properties(${SL_PROGRAM} PROPERTIES INSTALL_RPATH "$ORIGIN/${SL_LIB_FROM_BIN}")
    install(TARGETS ${SL_PROGRAM} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
endforeach()
# shortlist-mpi holds the library, so it looks for oneDNN itself.
if(TARGET shortlist_mpi AND SL_HAVE_ONEDNN AND NOT SL_ONEDNN_SYSTEM AND NOT SHORTLIST_BUNDLE_ONEDNN)
  set_property(TARGET shortlist_mpi APPEND PROPERTY INSTALL_RPATH "${SL_ONEDNN_FOLDER}")
endif()
