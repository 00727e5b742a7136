#pragma once
#include <optional>
#include <string>
#include <utility>

namespace reagent::inline v0 {

/// What every builtin lets its user change. Unset members keep the tool's own.
class builtin_options {
public:
    builtin_options() = default;
    builtin_options& name(std::string n) &
    {
        name_ = std::move(n);
        return *this;
    }
    builtin_options&& name(std::string n) && { return std::move(name(std::move(n))); }
    builtin_options& description(std::string d) &
    {
        description_ = std::move(d);
        return *this;
    }
    builtin_options&& description(std::string d) && { return std::move(description(std::move(d))); }
    builtin_options& pinned(bool p) &
    {
        pinned_ = p;
        return *this;
    }
    builtin_options&& pinned(bool p) && { return std::move(pinned(p)); }

    std::string name_or(std::string own) const { return name_.value_or(std::move(own)); }
    std::string description_or(std::string own) const { return description_.value_or(std::move(own)); }
    bool pinned_or(bool own) const noexcept { return pinned_.value_or(own); }

private:
    std::optional<std::string> name_, description_;
    std::optional<bool> pinned_;
};

}  // namespace reagent::inline v0
