#pragma once
#include <reagent/base/asio.hpp>
#include <reagent/base/json.hpp>

#include <optional>
#include <string>
#include <vector>

namespace reagent::inline v0 {

/// A store as `validate` tries it: put, read back by the id it answered, delete.
class store_probe {
public:
    virtual ~store_probe() = default;
    virtual awaitable<std::string> put(std::string content) = 0;
    virtual awaitable<std::optional<std::string>> get(std::string id) = 0;
    virtual awaitable<void> remove(std::string id) = 0;
};

/// spec/loop-and-providers.md §12.6.
class validation_report {
public:
    validation_report() = default;
    bool provider_ok = false, store_ok = true, store_skipped = true, tools_ok = true;
    std::string provider_error, store_error;
    std::vector<std::string> tool_errors;
    bool ok() const noexcept { return provider_ok && store_ok && tools_ok; }
    json to_json() const;
};

}  // namespace reagent::inline v0
