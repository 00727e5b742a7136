// Any cut of NDJSON gives the same items, at a cost linear in its size and with no more kept than a line.
#include <reagent/net/line_framer.hpp>
#include <reagent/net/ndjson.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace {

constexpr std::size_t limit = 256;

void require(bool holds)
{
    if (!holds) std::abort();
}

// `steer` chooses the sizes of the pieces; empty means all at once.
std::vector<std::string> run(std::string_view text, std::string_view steer)
{
    std::vector<std::string> seen;
    reagent::ndjson_reader reader(limit);
    reagent::ndjson_item item;
    const auto take = [&] {
        require(item.text.size() <= limit && item.text.find('\n') == std::string_view::npos);
        require((item.kind == reagent::ndjson_kind::too_long) == item.text.empty());
        const char kind = static_cast<char>('0' + static_cast<int>(item.kind));
        seen.push_back(kind + (item.kind == reagent::ndjson_kind::value ? item.value.dump() : std::string(item.text)));
    };
    std::size_t at = 0, turn = 0;
    while (at < text.size()) {
        const std::size_t size = steer.empty() ? text.size() : 1 + static_cast<unsigned char>(steer[turn++ % steer.size()]) % 37;
        const std::vector<char> piece(text.begin() + static_cast<std::ptrdiff_t>(at),
                                      text.begin() + static_cast<std::ptrdiff_t>(std::min(text.size(), at + size)));
        at += piece.size();
        reader.feed({piece.data(), piece.size()});
        while (reader.next(item)) take();
        require(reader.buffered() <= limit + 1);
    }
    if (reader.finish(item)) take();
    require(!reader.next(item));
    require(reader.values() + reader.not_json() + reader.too_long() == seen.size());
    return seen;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    const std::string_view all(reinterpret_cast<const char*>(data), size);
    // The first bytes steer the cuts, so that they evolve with the text.
    const std::string_view steer = all.substr(0, std::min<std::size_t>(size, 4));
    const std::string_view text = all.substr(steer.size());
    const std::vector<std::string> whole = run(text, {});
    require(run(text, std::string_view("\0", 1)) == whole);
    if (!steer.empty()) require(run(text, steer) == whole);
    return 0;
}
