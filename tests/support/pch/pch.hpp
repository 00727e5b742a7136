// The precompiled header of the tests: what nearly every suite includes. Nothing of the packages above model, whose changes would rebuild all tests.
#pragma once
#include "../../../cmake/boost/pch.hpp"

#include <reagent/base/error.hpp>
#include <reagent/base/json.hpp>
#include <reagent/testing/run.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
