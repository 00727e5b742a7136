# reagent_options: what every unit of ours agrees on (ODR). Installed with the package, so that a user's units agree too.
add_library(reagent_options INTERFACE)
target_compile_features(reagent_options INTERFACE cxx_std_20)
# One flag for all units, since re2 brings it and a precompiled header must agree.
target_compile_options(reagent_options INTERFACE -pthread)
target_compile_definitions(reagent_options INTERFACE
    BOOST_ASIO_SEPARATE_COMPILATION BOOST_BEAST_SEPARATE_COMPILATION BOOST_ASIO_NO_DEPRECATED)
target_link_libraries(reagent_options INTERFACE Boost::headers Threads::Threads)
add_library(reagent::options ALIAS reagent_options)

# reagent_build: how this tree is built; never installed.
add_library(reagent_build INTERFACE)
target_compile_options(reagent_build INTERFACE
    -fPIC -Wall -Wextra -Wpedantic -Wconversion -Wshadow
    $<$<BOOL:${REAGENT_WERROR}>:-Werror>
    $<$<CXX_COMPILER_ID:GNU>:-fcoroutines>
    # A false alarm of GCC 12: Asio's frame allocator, once inlined into a coroutine's start, looks like a mismatched pair of new and delete.
    $<$<CXX_COMPILER_ID:GNU>:-Wno-mismatched-new-delete>
    # Another one: the storage of an empty optional, under sanitizers and in unity units.
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
# GCC collects its garbage a dozen times in a unit full of templates, which takes a twentieth of the time and frees little.
target_compile_options(reagent_build INTERFACE $<$<CXX_COMPILER_ID:GNU>:--param=ggc-min-heapsize=524288>)
if(REAGENT_SANITIZE)
    target_compile_options(reagent_build INTERFACE -fsanitize=${REAGENT_SANITIZE} -fno-omit-frame-pointer)
    if(REAGENT_SANITIZE MATCHES "undefined")
        # Clang 14 cannot emit a coroutine with the check of function types ("difference across sections").
        # AddressSanitizer finds what null, alignment, vptr and object-size do, which nearly double the time to compile templates.
        target_compile_options(reagent_build INTERFACE -fno-sanitize-recover=undefined
            -fno-sanitize=null,alignment,vptr,object-size $<$<CXX_COMPILER_ID:Clang>:-fno-sanitize=function>)
    endif()
    if(REAGENT_SANITIZE MATCHES "thread")
        target_compile_options(reagent_build INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-tsan>)
    endif()
    target_link_options(reagent_build INTERFACE -fsanitize=${REAGENT_SANITIZE})
endif()
include(CheckLinkerFlag)
check_linker_flag(CXX -fuse-ld=lld REAGENT_HAVE_LLD)
if(REAGENT_HAVE_LLD)
    target_link_options(reagent_build INTERFACE -fuse-ld=lld)
endif()

# reagent_package(<name> SOURCES … [PUBLIC targets…] [PRIVATE targets…] [BATCH n])
# A static library reagent_<name> with alias reagent::<name>; public headers in include/, private ones in src/. Built as unity of n files (six):
# half of what a unit of its own would compile is what its neighbours compile as well.
function(reagent_package name)
    cmake_parse_arguments(arg "" "BATCH" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
    if(NOT arg_BATCH)
        set(arg_BATCH 6)
    endif()
    set(target reagent_${name})
    add_library(${target} STATIC ${arg_SOURCES})
    add_library(reagent::${name} ALIAS ${target})
    target_include_directories(${target}
        PUBLIC $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
        PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/src)
    target_link_libraries(${target} PUBLIC reagent_options ${arg_PUBLIC} PRIVATE ${arg_PRIVATE} $<BUILD_INTERFACE:reagent_build>)
    set_target_properties(${target} PROPERTIES
        CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON EXPORT_NAME ${name}
        UNITY_BUILD ${REAGENT_UNITY} UNITY_BUILD_BATCH_SIZE ${arg_BATCH})
    # In a unity unit every source is an included file, and GCC warns of its anonymous namespaces.
    target_compile_options(${target} PRIVATE $<$<AND:$<BOOL:${REAGENT_UNITY}>,$<CXX_COMPILER_ID:GNU>>:-Wno-subobject-linkage>)
    reagent_use_pch(${target})
    set_property(GLOBAL APPEND PROPERTY REAGENT_PACKAGES ${target})
    set_property(GLOBAL APPEND PROPERTY REAGENT_INCLUDE_DIRS ${CMAKE_CURRENT_SOURCE_DIR}/include)
endfunction()

function(reagent_use_pch target)
    if(REAGENT_PCH AND NOT target STREQUAL reagent_boost)
        target_precompile_headers(${target} REUSE_FROM reagent_boost)
        set_target_properties(${target} PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
    endif()
endfunction()

# reagent_tests(<folder> SOURCES … LINK … [BATCH n] [THREADS]) — one executable a folder, built as unity of n files (four); tests see the package's src/.
function(reagent_tests name)
    cmake_parse_arguments(arg "THREADS" "BATCH" "SOURCES;LINK;PRIVATE_DIRS;DEFINITIONS" ${ARGN})
    if(NOT arg_BATCH)
        set(arg_BATCH 4)
    endif()
    set(target reagent_${name}_tests)
    add_executable(${target} ${arg_SOURCES})
    target_link_libraries(${target} PRIVATE ${arg_LINK} reagent::testing GTest::gmock GTest::gtest_main reagent_build)
    target_include_directories(${target} PRIVATE ${arg_PRIVATE_DIRS})
    target_compile_definitions(${target} PRIVATE REAGENT_SOURCE_DIR="${PROJECT_SOURCE_DIR}" REAGENT_BINARY_DIR="${PROJECT_BINARY_DIR}" ${arg_DEFINITIONS})
    # In a unity unit every test file is an included one, and GCC warns of its anonymous namespaces.
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${arg_BATCH})
    # A precompiled header of the tests' own: with GoogleTest and the headers that nearly every suite includes.
    if(REAGENT_PCH)
        if(NOT TARGET reagent_tests_pch)
            add_library(reagent_tests_pch OBJECT ${PROJECT_SOURCE_DIR}/tests/support/pch/pch.cpp)
            target_link_libraries(reagent_tests_pch PRIVATE reagent::testing GTest::gmock GTest::gtest reagent_build)
            target_compile_options(reagent_tests_pch PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
            set_target_properties(reagent_tests_pch PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
            target_precompile_headers(reagent_tests_pch PRIVATE ${PROJECT_SOURCE_DIR}/tests/support/pch/pch.hpp)
        endif()
        target_precompile_headers(${target} REUSE_FROM reagent_tests_pch)
        set_target_properties(${target} PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
    endif()
    include(GoogleTest)
    if(arg_THREADS)
        # `ctest -L threads` finds them by the name of their suite.
        if(NOT name MATCHES "_threads$")
            message(FATAL_ERROR "reagent_tests: the suite ${name} uses threads, so its name must end in _threads")
        endif()
        if(NOT TARGET thread_tests)
            add_custom_target(thread_tests)
        endif()
        add_dependencies(thread_tests ${target})
    endif()
    gtest_discover_tests(${target} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 300 LABELS ${name})
endfunction()
