#include <reagent/base/ascii.hpp>
#include <reagent/base/error.hpp>
#include <reagent/net/content_decoder.hpp>

#include <zlib.h>

#include <array>
#include <limits>
#include <optional>
#include <vector>

namespace reagent::inline v0 {
namespace {

enum class coding { gzip, deflate };

constexpr int window_zlib = 15, window_gzip = 15 + 16, window_raw = -15;
constexpr std::size_t decoded_piece = 16 * 1024;

std::string_view trimmed(std::string_view s) noexcept
{
    const auto blank = [](char c) { return c == ' ' || c == '\t'; };
    while (!s.empty() && blank(s.front())) s.remove_prefix(1);
    while (!s.empty() && blank(s.back())) s.remove_suffix(1);
    return s;
}

// One coding. zlib keeps a pointer to its z_stream, so a layer never moves.
class layer {
public:
    explicit layer(coding c) : coding_(c) {}
    layer(const layer&) = delete;
    layer& operator=(const layer&) = delete;
    ~layer()
    {
        if (open_) inflateEnd(&z_);
    }

    bool ended() const noexcept { return ended_ || !fed_; }

    // Calls `emit(piece)` for each piece decoded; false stops.
    template <class Emit>
    bool feed(std::string_view bytes, const Emit& emit)
    {
        if (bytes.empty()) return true;
        fed_ = true;
        if (!open_ && !start(bytes)) return true;
        if (held_) {
            const char first = *held_;
            held_.reset();
            if (!run(std::string_view(&first, 1), emit)) return false;
        }
        return run(bytes, emit);
    }

private:
    bool start(std::string_view bytes)
    {
        int window = window_gzip;
        if (coding_ == coding::deflate) {
            // Two bytes tell a zlib header from raw deflate, which servers send under the same name.
            const char first = held_ ? *held_ : bytes[0];
            if (!held_ && bytes.size() < 2) {
                held_ = first;
                return false;
            }
            const unsigned a = static_cast<unsigned char>(first), b = static_cast<unsigned char>(held_ ? bytes[0] : bytes[1]);
            window = (a & 0x0f) == Z_DEFLATED && (a >> 4) <= 7 && (a * 256 + b) % 31 == 0 ? window_zlib : window_raw;
        }
        if (inflateInit2(&z_, window) != Z_OK) throw std::bad_alloc();
        open_ = true;
        return true;
    }

    template <class Emit>
    bool run(std::string_view bytes, const Emit& emit)
    {
        static_assert(sizeof(uInt) >= 4);
        std::array<char, decoded_piece> piece;
        while (!bytes.empty()) {
            if (ended_) {
                // gzip members may follow one another (RFC 1952, section 2.2); nothing may follow deflate.
                if (coding_ != coding::gzip || inflateReset(&z_) != Z_OK) return false;
                ended_ = false;
            }
            const std::size_t part = std::min<std::size_t>(bytes.size(), std::numeric_limits<uInt>::max());
            z_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
            z_.avail_in = static_cast<uInt>(part);
            do {
                z_.next_out = reinterpret_cast<Bytef*>(piece.data());
                z_.avail_out = static_cast<uInt>(piece.size());
                const int status = inflate(&z_, Z_NO_FLUSH);
                const std::size_t made = piece.size() - z_.avail_out;
                if (made > 0 && !emit(std::string_view(piece.data(), made))) return false;
                if (status == Z_STREAM_END) {
                    ended_ = true;
                    break;
                }
                if (status == Z_BUF_ERROR) break;
                if (status != Z_OK) return false;
            } while (z_.avail_in > 0 || z_.avail_out == 0);
            bytes.remove_prefix(part - z_.avail_in);
        }
        return true;
    }

    z_stream z_{};
    coding coding_;
    std::optional<char> held_;
    bool open_ = false, ended_ = false, fed_ = false;
};

}  // namespace

struct content_decoder::impl {
    std::vector<std::unique_ptr<layer>> layers;  // outermost coding first: the order of decoding
    std::uint64_t made = 0;
    errc failure{};

    bool push(std::size_t level, std::string_view bytes, std::string& out, std::uint64_t max_out)
    {
        if (level == layers.size()) {
            made += bytes.size();
            if (max_out != 0 && made > max_out) {
                failure = errc::body_too_large;
                return false;
            }
            out.append(bytes);
            return true;
        }
        return layers[level]->feed(bytes, [&](std::string_view piece) { return push(level + 1, piece, out, max_out); });
    }
};

content_decoder::content_decoder() = default;
content_decoder::content_decoder(content_decoder&&) noexcept = default;
content_decoder& content_decoder::operator=(content_decoder&&) noexcept = default;
content_decoder::~content_decoder() = default;

boost::system::result<content_decoder> content_decoder::make(std::string_view value)
{
    content_decoder made;
    while (!value.empty()) {
        const std::size_t comma = value.find(',');
        const std::string_view name = trimmed(value.substr(0, comma));
        value = comma == std::string_view::npos ? std::string_view() : value.substr(comma + 1);
        if (name.empty() || equal_but_case(name, "identity")) continue;
        coding c{};
        if (equal_but_case(name, "gzip") || equal_but_case(name, "x-gzip")) c = coding::gzip;
        else if (equal_but_case(name, "deflate")) c = coding::deflate;
        else return make_error_code(errc::bad_encoding);
        if (!made.impl_) made.impl_ = std::make_unique<impl>();
        if (made.impl_->layers.size() == max_layers) return make_error_code(errc::bad_encoding);
        made.impl_->layers.insert(made.impl_->layers.begin(), std::make_unique<layer>(c));
    }
    return made;
}

bool content_decoder::identity() const noexcept
{
    return !impl_;
}

boost::system::result<void> content_decoder::feed(std::string_view bytes, std::string& out, std::uint64_t max_out)
{
    if (!impl_) {
        out.append(bytes);
        return {};
    }
    if (impl_->failure == errc{} && !impl_->push(0, bytes, out, max_out) && impl_->failure == errc{}) impl_->failure = errc::bad_encoding;
    if (impl_->failure != errc{}) return make_error_code(impl_->failure);
    return {};
}

bool content_decoder::ended() const noexcept
{
    if (!impl_) return true;
    for (const auto& l : impl_->layers)
        if (!l->ended()) return false;
    return true;
}

}  // namespace reagent::inline v0
