#include <reagent/base/error.hpp>
#include <reagent/base/secret.hpp>

#include <array>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <ostream>

namespace reagent::inline v0 {
namespace {

constexpr std::size_t longest_secret = 16 * 1024;

std::string_view trimmed(std::string_view s) noexcept
{
    constexpr std::string_view blank = " \t\r\n\v\f";
    const std::size_t from = s.find_first_not_of(blank);
    if (from == std::string_view::npos) return {};
    return s.substr(from, s.find_last_not_of(blank) - from + 1);
}

}  // namespace

secret::secret(std::string_view value) : value_(trimmed(value)) {}

secret::secret(secret&& other) noexcept : value_(std::move(other.value_))
{
    other.wipe();
}

secret& secret::operator=(const secret& other)
{
    if (this != &other) {
        std::string copy(other.value_);
        wipe();
        value_.swap(copy);
    }
    return *this;
}

secret& secret::operator=(secret&& other) noexcept
{
    if (this != &other) {
        wipe();
        value_ = std::move(other.value_);
        other.wipe();
    }
    return *this;
}

secret::~secret()
{
    wipe();
}

// The whole capacity: a short string leaves its bytes behind when it is moved from or assigned to.
void secret::wipe() noexcept
{
    value_.resize(value_.capacity());
    explicit_bzero(value_.data(), value_.size());
    value_.clear();
}

secret secret::from_env(const char* name)
{
    const char* value = std::getenv(name);
    return secret(value ? std::string_view(value) : std::string_view());
}

secret secret::from_file(const std::string& path)
{
    std::ifstream in(path, std::ios::binary);
    std::array<char, longest_secret + 1> bytes{};
    if (!in) throw config_error("cannot read the secret file " + path + ": check that it exists and is readable");
    in.read(bytes.data(), bytes.size());
    if (in.bad()) throw config_error("cannot read the secret file " + path + ": is it a regular file?");
    const std::string_view text(bytes.data(), static_cast<std::size_t>(in.gcount()));
    const std::string_view line = text.substr(0, text.find('\n'));
    secret result{line};
    const bool too_long = line.size() > longest_secret;
    explicit_bzero(bytes.data(), bytes.size());
    if (too_long)
        throw config_error("the first line of the secret file " + path + " is longer than " + std::to_string(longest_secret) + " bytes: it is no key");
    if (result.empty()) throw config_error("the secret file " + path + " has an empty first line: put the secret there");
    return result;
}

std::ostream& operator<<(std::ostream& out, const secret&)
{
    return out << "***";
}

}  // namespace reagent::inline v0
