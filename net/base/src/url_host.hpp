#pragma once
#include <reagent/base/url.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace reagent::inline v0::base_detail {

struct parsed_host {
    explicit parsed_host(url::host_kind k, std::string t) : kind(k), text(std::move(t)) {}
    url::host_kind kind;
    std::string text;
};

/// The host parser of the WHATWG URL standard for special schemes (section 3.5); `text` may be bracketed. Nothing when it is no host.
std::optional<parsed_host> parse_host(std::string_view text);

/// Percent-decodes; a '%' that starts no escape stays.
std::string percent_decoded(std::string_view text);

}  // namespace reagent::inline v0::base_detail
