#pragma once
#include <reagent/base/json.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace reagent_app {

enum class health_verdict { ok, warn, fail };
std::string_view to_string(health_verdict v) noexcept;

/// One line of `reagent doctor`.
class health {
public:
    health(std::string c, health_verdict v, std::string d) : check(std::move(c)), verdict(v), detail(std::move(d)) {}
    std::string check;
    health_verdict verdict;
    std::string detail;  ///< what was found and, when it is not ok, what to do
};

/// All checks in a fixed order; none throws, none leaves this machine.
std::vector<health> examine_system();

}  // namespace reagent_app
