// Lines of JSON-RPC, any of them: each has one kind, and what is written from one reads back the same.
#include <reagent/net/json_rpc.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

void require(bool holds)
{
    if (!holds) std::abort();
}

std::string text_of(const reagent::rpc_message& m)
{
    switch (m.kind) {
    case reagent::rpc_kind::request: return reagent::rpc_request_text(m.id, m.method, m.params);
    case reagent::rpc_kind::notification: return reagent::rpc_notification_text(m.method, m.params);
    case reagent::rpc_kind::response: return m.failed ? reagent::rpc_error_text(m.id, m.error) : reagent::rpc_result_text(m.id, m.result);
    case reagent::rpc_kind::malformed: break;
    }
    return {};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    const auto parsed = reagent::json::parse(std::string_view(reinterpret_cast<const char*>(data), size));
    if (!parsed) return 0;
    const reagent::rpc_message m = reagent::read_rpc(*parsed);
    require((m.kind == reagent::rpc_kind::malformed) == !m.problem.empty());
    if (m.kind == reagent::rpc_kind::malformed) return 0;
    require(m.id.is_string() || m.id.is_number() || m.kind == reagent::rpc_kind::notification || m.failed);
    const std::string text = text_of(m);
    require(text.find('\n') == std::string::npos);
    const auto again = reagent::json::parse(text);
    require(again.has_value());
    const reagent::rpc_message back = reagent::read_rpc(*again);
    require(back.kind == m.kind && back.id == m.id && back.method == m.method && back.params == m.params && back.result == m.result && back.failed == m.failed);
    require(back.error.code == m.error.code && back.error.message == m.error.message && back.error.data == m.error.data);
    return 0;
}
