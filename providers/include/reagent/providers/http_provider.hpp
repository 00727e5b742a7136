#pragma once
#include <reagent/model/provider.hpp>
#include <reagent/model/wire_codec.hpp>
#include <reagent/net/http_client.hpp>
#include <reagent/providers/http_call_options.hpp>

#include <memory>

namespace reagent::inline v0 {

/// The provider that speaks a codec's wire on `http`, whose context its calls must run on. It admits its attempts: a request that has a gate passes it before
/// every body that leaves. Calls of one provider may run at once on the client's executor. Warns once through the log when a key would travel in the clear.
/// Errors of a call: `provider_error`, `timeout_error` (`[OpenAIProvider] request timed out after <n>ms of socket inactivity`, …), `validation_error`, `halt_error`.
/// `thinking` and `mode` exclude each other as a call sees them, its own nulls included: such a call is a `validation_error` before any I/O.
provider_ptr make_http_provider(http_client http, std::unique_ptr<const wire_codec> codec, http_call_options options = {});

}  // namespace reagent::inline v0
