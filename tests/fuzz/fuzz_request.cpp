// A request reads the same however it is cut, no bytes break the reader, and what it lets pass is framed one way only.
#include "reader_pieces.hpp"
#include "request_reader.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

namespace {

using reagent::net_detail::request_limits;
using reagent::net_detail::request_reader;

void require(bool holds)
{
    if (!holds) std::abort();
}

struct outcome {
    std::string head, body;
    unsigned status = 0;
    bool head_done = false, done = false, keep_alive = false;
    std::size_t left_over = 0;
    bool operator==(const outcome&) const = default;
};

outcome run(std::string_view text, std::string_view steer)
{
    request_limits limits;
    limits.line = 128;
    limits.head = 512;
    limits.body = 256;
    outcome o;
    request_reader reader(limits);
    reagent::net_tests::fed_in_pieces fed = reagent::net_tests::feed_in_pieces(reader, text, reagent::net_tests::steered_sizes(steer));
    require(fed.sound && fed.most_kept <= limits.head);
    o.body = std::move(fed.body);
    require(!(reader.done() && reader.failed()) && (!reader.done() || reader.head_done()));
    require(o.body.size() <= limits.body || reader.failed());
    o.status = reader.status();
    o.head_done = reader.head_done();
    o.done = reader.done();
    o.keep_alive = reader.keep_alive();
    o.left_over = o.done ? fed.left_over : 0;
    require(o.status == 0 || (o.status >= 400 && o.status <= 599));
    if (o.head_done) {
        auto& head = reader.head();
        require(!head.method.empty() && (head.target.starts_with('/') || head.target == "*"));
        require(head.target.find_first_of(" \r\n#") == std::string::npos);
        o.head = head.method + ' ' + head.target + '\n';
        int lengths = 0, codings = 0, hosts = 0;
        for (std::size_t i = 0; i < head.fields.size(); ++i) {
            const auto [name, value] = head.fields[i];
            require(!name.empty() && head.fields.contains(name) && value.find_first_of("\r\n") == std::string_view::npos);
            std::string lowered(name);
            for (char& c : lowered) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
            lengths += lowered == "content-length";
            codings += lowered == "transfer-encoding";
            hosts += lowered == "host";
            o.head.append(name).append("=").append(value).append("\n");
        }
        require(lengths + codings <= 1 && hosts <= 1 && (hosts == 1 || head.minor == 0) && (codings == 0 || head.minor == 1));
        if (const auto length = reader.content_length(); length && o.done) require(o.body.size() == *length);
        if (lengths + codings == 0) require(o.done && o.body.empty());
    }
    // Where a malformed body is noticed depends on how much of it was seen; that it is malformed does not.
    if (o.status != 0) o.body.clear();
    return o;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    const std::string_view all(reinterpret_cast<const char*>(data), size);
    const std::string_view steer = all.substr(0, std::min<std::size_t>(size, 4));
    const std::string_view text = all.substr(steer.size());
    // A limit is met earlier or later by a reader that sees more at once.
    const auto limited = [](const outcome& o) { return o.status == 431 || o.status == 413 || o.status == 414; };
    const outcome whole = run(text, {});
    for (const std::string_view cuts : {std::string_view("\0", 1), steer}) {
        if (cuts.empty()) continue;
        const outcome cut = run(text, cuts);
        if (!limited(whole) && !limited(cut)) require(whole == cut);
    }
    return 0;
}
