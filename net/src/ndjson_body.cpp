#include <reagent/net/ndjson_body.hpp>

#include <reagent/base/untrusted_text.hpp>

#include <span>
#include <string>

namespace reagent::inline v0 {
namespace {

// Of a line in an error: looked at in bytes, shown in characters.
constexpr std::size_t looked_at = 800, shown = 200;

}  // namespace

void ndjson_body::take(ndjson_item& item, std::vector<json>& values)
{
    const std::string where = "[ndjson] line " + std::to_string(item.line);
    switch (item.kind) {
    case ndjson_kind::value: values.push_back(std::move(item.value)); break;
    case ndjson_kind::not_json:
        failure_ = std::make_exception_ptr(
            transport_error(errc::invalid_json, where + " is not JSON: " + untrusted_text(item.text.substr(0, looked_at), shown), false));
        break;
    case ndjson_kind::too_long: failure_ = std::make_exception_ptr(transport_error(errc::event_too_large, where + " is too long", false)); break;
    }
}

awaitable<bool> ndjson_body::read(std::vector<json>& values)
{
    values.clear();
    ndjson_item item;
    while (values.empty() && !failure_ && !ended_) {
        const std::span<const char> bytes = co_await body_.read_some();
        ended_ = bytes.empty();
        reader_.feed({bytes.data(), bytes.size()});
        while (!failure_ && (ended_ ? reader_.finish(item) : reader_.next(item))) take(item, values);
    }
    if (values.empty() && failure_) std::rethrow_exception(failure_);
    co_return !values.empty();
}

}  // namespace reagent::inline v0
