// Any cut of an event stream gives the same events, at a cost linear in its size.
#include <reagent/net/sse_parser.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace {

constexpr std::size_t limit = 4096;

void require(bool holds)
{
    if (!holds) std::abort();
}

struct outcome {
    std::vector<std::string> events;
    bool failed = false;
    bool operator==(const outcome&) const = default;
};

// `steer` chooses the sizes of the pieces; empty means all at once.
outcome run(std::string_view text, std::string_view steer)
{
    outcome o;
    reagent::sse_parser parser(limit);
    reagent::sse_event e;
    std::size_t at = 0, turn = 0;
    while (at < text.size()) {
        const std::size_t size = steer.empty() ? text.size() : 1 + static_cast<unsigned char>(steer[turn++ % steer.size()]) % 37;
        const std::vector<char> piece(text.begin() + static_cast<std::ptrdiff_t>(at),
                                      text.begin() + static_cast<std::ptrdiff_t>(std::min(text.size(), at + size)));
        at += piece.size();
        parser.feed({piece.data(), piece.size()});
        while (parser.next(e)) {
            require(e.data.size() <= limit);
            o.events.push_back(std::string(e.type) + '\0' + std::string(e.data));
        }
        require(parser.buffered() <= 2 * limit + 64);
    }
    if (parser.finish(e)) o.events.push_back(std::string(e.type) + '\0' + std::string(e.data));
    require(!parser.next(e));
    o.failed = parser.failed();
    require(parser.bytes_scanned() <= 2 * text.size() + 2);
    return o;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    const std::string_view all(reinterpret_cast<const char*>(data), size);
    // The first bytes steer the cuts, so that they evolve with the text.
    const std::string_view steer = all.substr(0, std::min<std::size_t>(size, 4));
    const std::string_view text = all.substr(steer.size());
    const outcome whole = run(text, {});
    require(run(text, std::string_view("\0", 1)) == whole);
    if (!steer.empty()) require(run(text, steer) == whole);
    return 0;
}
