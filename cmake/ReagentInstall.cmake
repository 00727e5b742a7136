# cmake --install: headers, libraries, the program, and what find_package(reagent) reads.
include(CMakePackageConfigHelpers)
set(REAGENT_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/reagent)

get_property(packages GLOBAL PROPERTY REAGENT_PACKAGES)
set_target_properties(reagent_options PROPERTIES EXPORT_NAME options)
install(TARGETS ${packages} reagent_options EXPORT reagentTargets
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT reagentTargets NAMESPACE reagent:: DESTINATION ${REAGENT_CMAKE_DIR})

get_property(include_dirs GLOBAL PROPERTY REAGENT_INCLUDE_DIRS)
foreach(dir IN LISTS include_dirs)
    install(DIRECTORY ${dir}/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.hpp")
endforeach()

if(TARGET reagent)
    install(TARGETS reagent RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/CHANGELOG.md
    DESTINATION ${CMAKE_INSTALL_DOCDIR})

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/reagentConfig.cmake.in ${PROJECT_BINARY_DIR}/reagentConfig.cmake
    INSTALL_DESTINATION ${REAGENT_CMAKE_DIR})
# Before 1.0 a minor version may break: 0.1 does not satisfy a request for 0.2, nor the other way round.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/reagentConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/reagentConfig.cmake ${PROJECT_BINARY_DIR}/reagentConfigVersion.cmake DESTINATION ${REAGENT_CMAKE_DIR})
