#pragma once
#include <boost/system/result.hpp>

#include <string>
#include <string_view>

namespace reagent::inline v0 {

/// Standard alphabet with padding (RFC 4648 section 4).
std::string base64_encode(std::string_view bytes);
/// Strict: standard alphabet, full padding, no blanks, unused bits zero. Errors: `errc::invalid_argument`.
boost::system::result<std::string> base64_decode(std::string_view text);

}  // namespace reagent::inline v0
