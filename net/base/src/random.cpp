#include <reagent/base/random.hpp>

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <random>

namespace reagent::inline v0 {
namespace {

std::mt19937_64 seeded()
{
    std::array<std::uint32_t, 16> seed{};
    // Up to 256 bytes getrandom neither blocks after boot nor returns short; std::random_device is the spare for kernels without it.
    if (::getrandom(seed.data(), sizeof seed, 0) != static_cast<ssize_t>(sizeof seed)) {
        std::random_device device;
        for (std::uint32_t& word : seed) word = device();
    }
    std::seed_seq sequence(seed.begin(), seed.end());
    return std::mt19937_64(sequence);
}

void append_digits(std::string& out, std::uint64_t bits, unsigned n)
{
    for (unsigned i = 0; i < n; ++i) out.push_back("0123456789abcdef"[(bits >> (60 - 4 * i)) & 15]);
}

std::uint64_t draw(const random_source& source)
{
    return source ? source() : random_bits();
}

}  // namespace

std::uint64_t random_bits()
{
    thread_local std::mt19937_64 generator = seeded();
    return generator();
}

std::string random_hex(const random_source& source, unsigned n)
{
    std::string out;
    n = std::min(n, 64u);
    out.reserve(n);
    while (out.size() < n) append_digits(out, draw(source), std::min(16u, n - static_cast<unsigned>(out.size())));
    return out;
}

std::string random_uuid(const random_source& source)
{
    const std::uint64_t high = (draw(source) & ~0xF000ull) | 0x4000ull;
    const std::uint64_t low = (draw(source) & ~(3ull << 62)) | (2ull << 62);
    std::string out;
    append_digits(out, high, 8);
    out.push_back('-');
    append_digits(out, high << 32, 4);
    out.push_back('-');
    append_digits(out, high << 48, 4);
    out.push_back('-');
    append_digits(out, low, 4);
    out.push_back('-');
    append_digits(out, low << 16, 12);
    return out;
}

}  // namespace reagent::inline v0
