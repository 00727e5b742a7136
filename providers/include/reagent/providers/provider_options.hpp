#pragma once
#include <reagent/base/secret.hpp>
#include <reagent/base/url.hpp>
#include <reagent/model/codec_options.hpp>
#include <reagent/providers/http_call_options.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

/// One option of a fluent class `self`: a setter for a named object and one for a temporary, so that a chain may start with either, and a getter of the setter's name.
/// For the options of a vendor, yours too.
#define REAGENT_PROVIDER_OPTION(self, name, type, member)                                                                                                      \
    self& name(type v)&                                                                                                                                        \
    {                                                                                                                                                          \
        member = std::move(v);                                                                                                                                 \
        return static_cast<self&>(*this);                                                                                                                      \
    }                                                                                                                                                          \
    self&& name(type v)&&                                                                                                                                      \
    {                                                                                                                                                          \
        member = std::move(v);                                                                                                                                 \
        return static_cast<self&&>(*this);                                                                                                                     \
    }                                                                                                                                                          \
    const type& name() const noexcept                                                                                                                          \
    {                                                                                                                                                          \
        return member;                                                                                                                                         \
    }

namespace reagent::inline v0 {

/// What the options of all providers over HTTP share: `Self` derives from it, `Codec` is the codec's options. Setters chain; a getter has the setter's name and
/// no argument.
template <class Self, class Codec>
class provider_options {
public:
    REAGENT_PROVIDER_OPTION(Self, model, std::string, codec_.model)
    REAGENT_PROVIDER_OPTION(Self, key, secret, codec_.key)
    /// The codec joins its path to it.
    REAGENT_PROVIDER_OPTION(Self, base_url, url, codec_.base_url)
    Self& base_url(std::string_view text) & { return base_url(url::parse_or_throw(text, "base URL")); }
    Self&& base_url(std::string_view text) && { return std::move(base_url(text)); }
    REAGENT_PROVIDER_OPTION(Self, temperature, std::optional<double>, codec_.temperature)
    /// Most tokens of one answer, for calls that set none.
    REAGENT_PROVIDER_OPTION(Self, max_tokens, std::optional<std::uint64_t>, codec_.max_tokens)
    /// Sent verbatim when truthy.
    REAGENT_PROVIDER_OPTION(Self, thinking, json, codec_.thinking)
    REAGENT_PROVIDER_OPTION(Self, mode, std::optional<thinking_mode>, codec_.mode)
    /// Put the service's error bodies into `provider_error::body`; they may quote the prompt.
    REAGENT_PROVIDER_OPTION(Self, expose_error_body, bool, codec_.expose_error_body)
    /// Put the text of unreadable tool arguments into the malformed marker.
    REAGENT_PROVIDER_OPTION(Self, expose_malformed_args, bool, codec_.expose_malformed_args)
    /// One more header of every request (`api-key`, `OpenAI-Organization`); chains.
    Self& header(std::string name, std::string value) &
    {
        codec_.headers.emplace_back(std::move(name), std::move(value));
        return static_cast<Self&>(*this);
    }
    Self&& header(std::string name, std::string value) && { return std::move(header(std::move(name), std::move(value))); }
    /// An object: members of every body that have no setter here (`top_p`, `seed`, `stop`, `parallel_tool_calls`).
    REAGENT_PROVIDER_OPTION(Self, members, json, codec_.members)
    /// Most bytes of arguments of one call. Default 8 MiB.
    REAGENT_PROVIDER_OPTION(Self, max_arguments, std::size_t, codec_.max_arguments)
    /// Ids of calls that come without one.
    REAGENT_PROVIDER_OPTION(Self, random, random_source, codec_.random)
    /// Longest time without a byte in either direction; off is allowed. Default 600 s.
    REAGENT_PROVIDER_OPTION(Self, idle, time_limit, call_.idle)
    /// Total time of a call, attempts of its own included. Default off.
    REAGENT_PROVIDER_OPTION(Self, total, time_limit, call_.total)
    /// Name, TCP and TLS. Default 10 s.
    REAGENT_PROVIDER_OPTION(Self, connect, time_limit, call_.connect)
    /// From the last request byte to the end of the response head. Default off.
    REAGENT_PROVIDER_OPTION(Self, first_byte, time_limit, call_.first_byte)
    REAGENT_PROVIDER_OPTION(Self, limits, response_limits, call_.limits)
    REAGENT_PROVIDER_OPTION(Self, log, log_sink, call_.log)

    const Codec& codec() const noexcept { return codec_; }
    const http_call_options& call() const noexcept { return call_; }

protected:
    provider_options() = default;
    Codec codec_;
    http_call_options call_;
};

}  // namespace reagent::inline v0
