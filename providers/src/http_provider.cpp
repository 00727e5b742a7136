#include "http_model_call.hpp"

#include <reagent/model/http_failure.hpp>
#include <reagent/providers/http_provider.hpp>

namespace reagent::inline v0 {

namespace providers_detail {

http_provider::http_provider(http_client http, std::unique_ptr<const wire_codec> codec, http_call_options options)
    : http_(std::move(http)), codec_(std::move(codec)), options_(std::move(options))
{
    if (codec_->key_in_clear()) warn("the API key travels in the clear to " + codec_->endpoint(false).authority() + "; use https");
}

model_call_ptr http_provider::start(generate_request request)
{
    return std::make_unique<http_model_call>(self(), std::move(request));
}

namespace {

awaitable<generate_result> result_of(std::unique_ptr<http_model_call> call)
{
    awaitable<bool> whole = call->advance(nullptr);
    co_await std::move(whole);
    co_return call->take_result();
}

}  // namespace

awaitable<generate_result> http_provider::generate(generate_request request)
{
    request.options.stream = false;
    return result_of(std::make_unique<http_model_call>(self(), std::move(request)));
}

void http_provider::warn(std::string_view what) const
{
    options_.log(log_level::warn, prefixed(codec_->component(), what));
}

std::string http_provider::take_storage()
{
    std::string body;
    if (!spare_.empty()) {
        body = std::move(spare_.back());
        spare_.pop_back();
    }
    return body;
}

void http_provider::keep_storage(std::string body)
{
    if (spare_.size() < max_spare && body.capacity() >= sizeof body && body.capacity() <= max_spare_size) spare_.push_back(std::move(body));
}

void http_provider::warn_once(bool& said, std::string_view what)
{
    if (said) return;
    said = true;
    warn(what);
}

}  // namespace providers_detail

provider_ptr make_http_provider(http_client http, std::unique_ptr<const wire_codec> codec, http_call_options options)
{
    return std::make_shared<providers_detail::http_provider>(std::move(http), std::move(codec), std::move(options));
}

}  // namespace reagent::inline v0
