#pragma once
#include <string_view>

namespace reagent::inline v0::testing_detail {

/// The words of a status line.
constexpr std::string_view http_reason(int status) noexcept
{
    switch (status) {
        case 200: return "OK";
        case 302: return "Found";
        case 400: return "Bad Request";
        case 401: return "Unauthorized";
        case 403: return "Forbidden";
        case 404: return "Not Found";
        case 405: return "Method Not Allowed";
        case 413: return "Content Too Large";
        case 429: return "Too Many Requests";
        case 431: return "Request Header Fields Too Large";
        case 500: return "Internal Server Error";
        case 502: return "Bad Gateway";
        case 503: return "Service Unavailable";
        case 529: return "Overloaded";
        default: return "Status";
    }
}

}  // namespace reagent::inline v0::testing_detail
