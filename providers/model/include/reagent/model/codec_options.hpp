#pragma once
#include <reagent/base/json.hpp>
#include <reagent/base/random.hpp>
#include <reagent/base/secret.hpp>
#include <reagent/base/url.hpp>
#include <reagent/model/generate.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace reagent::inline v0 {

/// What every wire codec is made of. A codec's own options derive from it and set the defaults.
class codec_options {
public:
    std::string model;
    url base_url;  ///< the codec joins its path to it
    secret key;    ///< empty: no header for it
    std::optional<double> temperature;
    std::optional<std::uint64_t> max_tokens;  ///< most tokens of one answer, for calls that set none
    json thinking;                            ///< the wire's own value, sent verbatim when truthy
    std::optional<thinking_mode> mode;
    bool expose_error_body = false, expose_malformed_args = false;
    std::size_t max_arguments = 8 * 1024 * 1024;               ///< bytes of arguments of one call
    std::vector<std::pair<std::string, std::string>> headers;  ///< sent with every request beside our own
    json members;                                              ///< an object: members of every body that we do not set (`top_p`, `seed`, `stop`); null: none
    random_source random;                                      ///< ids of calls that come without; empty: the default source

protected:
    codec_options(std::string m, std::string_view base) : model(std::move(m)), base_url(url::parse_or_throw(base, "baseUrl")) {}
    ~codec_options() = default;
    codec_options(const codec_options&) = default;
    codec_options(codec_options&&) noexcept = default;
    codec_options& operator=(const codec_options&) = default;
    codec_options& operator=(codec_options&&) noexcept = default;
};

}  // namespace reagent::inline v0
