#include "hosts_file.hpp"

#include <reagent/base/ascii.hpp>

#include <algorithm>
#include <fstream>
#include <iterator>

namespace reagent::inline v0::net_detail {
namespace {

constexpr std::string_view blanks = " \t\r";

std::string_view next_word(std::string_view& line) noexcept
{
    line.remove_prefix(std::min(line.find_first_not_of(blanks), line.size()));
    const std::string_view word = line.substr(0, line.find_first_of(blanks));
    line.remove_prefix(word.size());
    return word;
}

}  // namespace

std::vector<ip_address> hosts_in(std::string_view text, std::string_view host)
{
    if (host.ends_with('.')) host.remove_suffix(1);
    std::vector<ip_address> found;
    while (!text.empty()) {
        std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(line.size() + 1, text.size()));
        line = line.substr(0, line.find('#'));
        const auto address = ip_address::parse(next_word(line));
        if (!address) continue;
        for (std::string_view name = next_word(line); !name.empty(); name = next_word(line)) {
            if (!equal_but_case(name, host)) continue;
            if (std::find(found.begin(), found.end(), *address) == found.end()) found.push_back(*address);
        }
    }
    return found;
}

std::vector<ip_address> hosts_of(const std::string& path, std::string_view host)
{
    std::ifstream in(path, std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    return hosts_in(text, host);
}

}  // namespace reagent::inline v0::net_detail
