// A response reads the same however it is cut, and no bytes break the reader.
#include "response_reader.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

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
    std::string unparsed;
    std::size_t at = 0, turn = 0;
    while (at < text.size() && !reader.done() && !reader.failed()) {
        const std::size_t size = steer.empty() ? text.size() : 1 + static_cast<unsigned char>(steer[turn++ % steer.size()]) % 61;
        const std::string_view fresh = text.substr(at, size);
        at += fresh.size();
        std::vector<char> bytes(unparsed.begin(), unparsed.end());
        bytes.insert(bytes.end(), fresh.begin(), fresh.end());
        const auto fed = reader.feed(bytes.data(), bytes.size());
        require(fed.consumed <= bytes.size() && fed.body_at + fed.body_size <= fed.consumed);
        o.body.append(bytes.data() + fed.body_at, fed.body_size);
        unparsed.assign(bytes.data() + fed.consumed, bytes.size() - fed.consumed);
        require(reader.done() || reader.failed() || unparsed.size() < limit);
    }
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
    o.left_over = o.done ? unparsed.size() + text.size() - at : 0;
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
