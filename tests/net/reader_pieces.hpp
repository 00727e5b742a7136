/// Feeds a reader of requests or of responses, for tests and fuzzers.
#pragma once
#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace reagent::net_tests {

/// What came of it.
struct fed_in_pieces {
    std::string body;
    std::size_t left_over = 0;  ///< bytes behind the end
    std::size_t most_kept = 0;  ///< bytes that had to be handed in again
    bool sound = true;          ///< the reader never told of bytes it was not given
};

/// Feeds `text` until the reader is done or has failed, `next_size()` bytes at a time. Each piece is memory of the exact size: a read past it is an
/// error of the sanitizer.
template <class Reader, class NextSize>
fed_in_pieces feed_in_pieces(Reader& reader, std::string_view text, NextSize next_size)
{
    fed_in_pieces out;
    std::string unparsed;
    std::size_t at = 0;
    while (at < text.size() && !reader.done() && !reader.failed()) {
        const std::string_view fresh = text.substr(at, next_size());
        at += fresh.size();
        std::vector<char> bytes(unparsed.begin(), unparsed.end());
        bytes.insert(bytes.end(), fresh.begin(), fresh.end());
        const auto fed = reader.feed(bytes.data(), bytes.size());
        out.sound = out.sound && fed.consumed <= bytes.size() && fed.body_at + fed.body_size <= fed.consumed;
        if (!out.sound) break;
        out.body.append(bytes.data() + fed.body_at, fed.body_size);
        unparsed.assign(bytes.data() + fed.consumed, bytes.size() - fed.consumed);
        if (!reader.done() && !reader.failed()) out.most_kept = std::max(out.most_kept, unparsed.size());
    }
    out.left_over = unparsed.size() + text.size() - at;
    return out;
}

/// The sizes that a fuzzer's first bytes say; all at once where they say nothing.
class steered_sizes {
public:
    explicit steered_sizes(std::string_view steer) : steer_(steer) {}
    std::size_t operator()() { return steer_.empty() ? std::string_view::npos : 1 + static_cast<unsigned char>(steer_[turn_++ % steer_.size()]) % 61; }

private:
    std::string_view steer_;
    std::size_t turn_ = 0;
};

}  // namespace reagent::net_tests
