// A URL that was accepted is clean, reads the same again, and stays so when joined; addresses print what they read.
#include <reagent/base/address.hpp>
#include <reagent/base/url.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

using reagent::ip_address;
using reagent::url;

void require(bool ok)
{
    if (!ok) std::abort();
}

bool printable(std::string_view text)
{
    return std::all_of(text.begin(), text.end(), [](char c) { return c > 0x20 && c < 0x7F; });
}

void check_address(std::string_view text)
{
    const std::optional<ip_address> a = ip_address::parse(text);
    if (!a) return;
    const std::optional<ip_address> again = ip_address::parse(a->to_string());
    require(again && *again == *a && again->to_string() == a->to_string());
}

void check_url(const url& u)
{
    require(printable(u.text()) && printable(u.userinfo()));
    require(!u.host().empty() && u.target().starts_with("/") && u.target().find('#') == std::string::npos);
    require(std::none_of(u.host().begin(), u.host().end(), [](char c) { return c >= 'A' && c <= 'Z'; }));
    const std::optional<ip_address> address = ip_address::parse(u.host());
    require(address.has_value() == (u.kind() != url::host_kind::name));
    if (address) require(address->is_v4() == (u.kind() == url::host_kind::ipv4) && address->to_string() == u.host() && address->loopback() == u.loopback());
    const boost::system::result<url> again = url::parse(u.text());
    require(again.has_value() && again->text() == u.text() && again->kind() == u.kind() && again->port() == u.port());
    require(u.redacted().starts_with(u.origin()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    check_address(text);
    const boost::system::result<url> u = url::parse(text);
    if (!u) return 0;
    check_url(*u);
    check_url(u->joined("/chat/completions"));
    check_url(u->joined("v1 /../x?alt=sse#y"));
    check_url(u->joined(text.substr(0, 64)));
    check_url(u->joined(""));
    return 0;
}
