#include <reagent/base/ascii.hpp>
#include <reagent/net/http_types.hpp>

namespace reagent::inline v0 {

void http_fields::add(std::string_view name, std::string_view value)
{
    const auto at = static_cast<std::uint32_t>(text_.size());
    const auto name_size = static_cast<std::uint32_t>(name.size());
    text_.append(name).append(value);
    spans_.push_back({at, name_size, at + name_size, static_cast<std::uint32_t>(value.size())});
}

std::string_view http_fields::get(std::string_view name) const noexcept
{
    for (std::size_t i = 0; i < spans_.size(); ++i) {
        if (spans_[i].name_size != name.size()) continue;
        const auto [n, v] = (*this)[i];
        if (equal_but_case(n, name)) return v;
    }
    return {};
}

bool http_fields::contains(std::string_view name) const noexcept
{
    for (std::size_t i = 0; i < spans_.size(); ++i)
        if (spans_[i].name_size == name.size() && equal_but_case((*this)[i].first, name)) return true;
    return false;
}

std::pair<std::string_view, std::string_view> http_fields::operator[](std::size_t i) const noexcept
{
    const span& s = spans_[i];
    const std::string_view all(text_);
    return {all.substr(s.name_at, s.name_size), all.substr(s.value_at, s.value_size)};
}

void http_fields::clear() noexcept
{
    text_.clear();
    spans_.clear();
}

void http_fields::reserve(std::size_t bytes, std::size_t count)
{
    text_.reserve(bytes);
    spans_.reserve(count);
}

}  // namespace reagent::inline v0
