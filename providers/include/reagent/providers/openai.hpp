#pragma once
#include <reagent/base/log_sink.hpp>
#include <reagent/base/random.hpp>
#include <reagent/base/secret.hpp>
#include <reagent/base/url.hpp>
#include <reagent/model/openai_codec.hpp>
#include <reagent/model/provider.hpp>
#include <reagent/net/http_client.hpp>
#include <reagent/providers/response_decoder.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace reagent::inline v0 {

/// Options of an OpenAI-compatible chat provider (spec/loop-and-providers.md §5). Setters chain; a getter has the setter's name and no argument.
class openai_options {
public:
    explicit openai_options(std::string model = "gpt-4o-mini") { codec_.model = std::move(model); }
    /// Reads the JSON names: `apiKey`, `model`, `baseUrl`, `legacyMaxTokens`, `thinking`, `thinkingMode`, `temperature`, `maxTokens`, `exposeErrorBody`,
    /// `exposeMalformedArgs`, `timeoutMs`, `deadlineMs`, `connectTimeoutMs`, `headersTimeoutMs`, `streamUsage`, `systemRole`. Unknown keys are errors.
    /// Throws `validation_error` naming the key.
    static openai_options from_json(const json& j);

    // Each setter comes for a named object and for a temporary, so that a chain may start with either.
#define REAGENT_OPENAI_OPTION(name, type, member)                                                                                                              \
    openai_options& name(type v)&                                                                                                                              \
    {                                                                                                                                                          \
        member = std::move(v);                                                                                                                                 \
        return *this;                                                                                                                                          \
    }                                                                                                                                                          \
    openai_options&& name(type v)&&                                                                                                                            \
    {                                                                                                                                                          \
        member = std::move(v);                                                                                                                                 \
        return std::move(*this);                                                                                                                               \
    }                                                                                                                                                          \
    const type& name() const noexcept                                                                                                                          \
    {                                                                                                                                                          \
        return member;                                                                                                                                         \
    }
    REAGENT_OPENAI_OPTION(model, std::string, codec_.model)
    REAGENT_OPENAI_OPTION(key, secret, codec_.key)
    /// `/chat/completions` is joined to it: `https://api.openai.com/v1`.
    REAGENT_OPENAI_OPTION(base_url, url, codec_.base_url)
    openai_options& base_url(std::string_view text) &
    {
        return base_url(url::parse_or_throw(text, "base URL"));
    }
    openai_options&& base_url(std::string_view text) &&
    {
        return std::move(base_url(text));
    }
    /// Send `max_tokens` instead of `max_completion_tokens`.
    REAGENT_OPENAI_OPTION(legacy_max_tokens, bool, codec_.legacy_max_tokens)
    /// Ask streams for their usage; off for servers that reject it.
    REAGENT_OPENAI_OPTION(stream_usage, bool, codec_.stream_usage)
    /// The role written for system messages.
    REAGENT_OPENAI_OPTION(system_role, std::string, codec_.system_role)
    REAGENT_OPENAI_OPTION(temperature, std::optional<double>, codec_.temperature)
    /// Most tokens of one answer, for calls that set none.
    REAGENT_OPENAI_OPTION(max_tokens, std::optional<std::uint64_t>, codec_.max_tokens)
    /// Sent verbatim when truthy.
    REAGENT_OPENAI_OPTION(thinking, json, codec_.thinking)
    REAGENT_OPENAI_OPTION(mode, std::optional<thinking_mode>, codec_.mode)
    /// Put the service's error bodies into `provider_error::body`; they may quote the prompt.
    REAGENT_OPENAI_OPTION(expose_error_body, bool, codec_.expose_error_body)
    /// Put the text of unreadable tool arguments into the malformed marker.
    REAGENT_OPENAI_OPTION(expose_malformed_args, bool, codec_.expose_malformed_args)
    /// One more header of every request (`api-key`, `OpenAI-Organization`); chains.
    openai_options& header(std::string name, std::string value) &
    {
        codec_.headers.emplace_back(std::move(name), std::move(value));
        return *this;
    }
    openai_options&& header(std::string name, std::string value) &&
    {
        return std::move(header(std::move(name), std::move(value)));
    }
    /// An object: members of every body that have no setter here (`top_p`, `seed`, `stop`, `parallel_tool_calls`).
    REAGENT_OPENAI_OPTION(members, json, codec_.members)
    /// Most bytes of arguments of one call. Default 8 MiB.
    REAGENT_OPENAI_OPTION(max_arguments, std::size_t, codec_.max_arguments)
    /// Ids of calls that come without one.
    REAGENT_OPENAI_OPTION(random, random_source, codec_.random)
    /// Longest time without a byte in either direction; off is allowed. Default 600 s.
    REAGENT_OPENAI_OPTION(idle, time_limit, idle_)
    /// Total time of a call, attempts of its own included. Default off.
    REAGENT_OPENAI_OPTION(total, time_limit, total_)
    /// Name, TCP and TLS. Default 10 s.
    REAGENT_OPENAI_OPTION(connect, time_limit, connect_)
    /// From the last request byte to the end of the response head. Default off.
    REAGENT_OPENAI_OPTION(first_byte, time_limit, first_byte_)
    REAGENT_OPENAI_OPTION(limits, response_limits, limits_)
    REAGENT_OPENAI_OPTION(log, log_sink, log_)
#undef REAGENT_OPENAI_OPTION

    const openai_codec_options& codec() const noexcept
    {
        return codec_;
    }

private:
    openai_codec_options codec_;
    time_limit idle_, total_, connect_, first_byte_;
    response_limits limits_;
    log_sink log_;
};

/// An OpenAI-compatible chat provider on `http`, whose context its calls must run on. It admits its attempts: a request that has a gate passes it before every body that leaves. Calls of
/// one provider may run at once on the client's executor. Warns once through the log when a key would travel in the clear.
/// Errors of a call: `provider_error`, `timeout_error` (`[OpenAIProvider] request timed out after <n>ms of socket inactivity`, …), `validation_error`, `halt_error`.
/// `thinking` and `mode` exclude each other as a call sees them, its own nulls included: such a call is a `validation_error` before any I/O.
/// Throws `validation_error` for a key that cannot stand in a header.
provider_ptr openai_chat(http_client http, openai_options options);

}  // namespace reagent::inline v0
