#pragma once
#include <functional>
#include <memory>
#include <string_view>

namespace reagent::inline v0 {

enum class log_level { debug, info, warn, error };

/// Where the library says what it cannot return. Given at construction; the default drops everything. Must be thread safe.
using log_function = std::function<void(log_level, std::string_view)>;
class log_sink {
public:
    log_sink() = default;
    explicit log_sink(log_function f) : f_(std::make_shared<log_function>(std::move(f))) {}
    void operator()(log_level level, std::string_view line) const
    {
        if (f_) (*f_)(level, line);
    }
    explicit operator bool() const noexcept { return f_ != nullptr; }

private:
    std::shared_ptr<log_function> f_;
};

}  // namespace reagent::inline v0
