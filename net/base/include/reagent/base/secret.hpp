#pragma once
#include <iosfwd>
#include <string>
#include <string_view>

namespace reagent::inline v0 {

/// A value that prints as `***` everywhere. Surrounding white space is trimmed (spec/loop-and-providers.md §2.1); the memory is wiped at the end.
class secret {
public:
    secret() = default;
    explicit secret(std::string_view value);
    secret(const secret&) = default;
    secret(secret&& other) noexcept;
    secret& operator=(const secret& other);
    secret& operator=(secret&& other) noexcept;
    ~secret();
    /// The environment variable's value; empty when it is not set.
    static secret from_env(const char* name);
    /// The first line of a file. Throws `config_error` naming the path.
    static secret from_file(const std::string& path);
    bool empty() const noexcept { return value_.empty(); }
    /// The one way to the value; grep for it to see where secrets go.
    std::string_view reveal() const noexcept { return value_; }
    friend std::ostream& operator<<(std::ostream& out, const secret& s);

private:
    void wipe() noexcept;
    std::string value_;
};

}  // namespace reagent::inline v0
