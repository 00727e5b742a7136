// A response reads the same however it is cut, and no bytes break the reader.
#include "reader_pieces.hpp"
#include "response_reader.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

namespace {

using reagent::net_detail::response_reader;

constexpr std::size_t limit = 512;

void require(bool holds)
{
    if (!holds) std::abort();
}

struct outcome {
    std::string body;
    std::string head;
    reagent::errc failure{};
    bool head_done = false, done = false, keep_alive = false, continued = false;
    std::size_t left_over = 0;
    bool operator==(const outcome&) const = default;
};

outcome run(std::string_view text, std::string_view steer, bool no_body, bool clean)
{
    outcome o;
    response_reader reader(limit, no_body);
    reagent::net_tests::fed_in_pieces fed = reagent::net_tests::feed_in_pieces(reader, text, reagent::net_tests::steered_sizes(steer));
    require(fed.sound && fed.most_kept < limit);
    o.body = std::move(fed.body);
    if (!reader.done() && !reader.failed()) reader.end_of_input(clean);
    require(reader.done() || reader.failed());
    require(!(reader.done() && reader.failed()));
    require(!reader.done() || reader.head_done());
    o.failure = reader.failure();
    o.head_done = reader.head_done();
    o.done = reader.done();
    o.keep_alive = reader.keep_alive();
    o.continued = reader.continue_seen();
    require(!o.continued || text.find(" 100") != std::string_view::npos);
    o.left_over = o.done ? fed.left_over : 0;
    if (o.head_done) {
        require(reader.head().status >= 200 && reader.head().status <= 999);
        o.head = std::to_string(reader.head().status);
        for (std::size_t i = 0; i < reader.head().fields.size(); ++i) {
            const auto [name, value] = reader.head().fields[i];
            require(!name.empty() && reader.head().fields.contains(name));
            o.head.append(name).append("=").append(value).append("\n");
        }
        if (const auto length = reader.content_length(); length && o.done) require(o.body.size() == *length);
    }
    // Where a malformed body is noticed depends on how much of it was seen; that it is malformed does not.
    if (o.failure != reagent::errc{}) o.body.clear();
    return o;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    const std::string_view all(reinterpret_cast<const char*>(data), size);
    const std::string_view steer = all.substr(0, std::min<std::size_t>(size, 4));
    const std::string_view text = all.substr(steer.size());
    const bool no_body = !steer.empty() && (steer[0] & 1) != 0, clean = steer.empty() || (steer[0] & 2) == 0;
    const outcome whole = run(text, {}, no_body, clean);
    const outcome bytes = run(text, std::string_view("\0", 1), no_body, clean);
    // A limit is met earlier or later by a reader that sees more at once.
    const auto limited = [](const outcome& o) { return o.failure == reagent::errc::headers_too_large; };
    if (!limited(whole) && !limited(bytes)) require(whole == bytes);
    if (!steer.empty()) {
        const outcome cut = run(text, steer, no_body, clean);
        if (!limited(whole) && !limited(cut)) require(whole == cut);
    }
    return 0;
}
