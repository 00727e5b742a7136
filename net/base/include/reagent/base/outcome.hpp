#pragma once
#include <reagent/base/asio.hpp>
#include <reagent/base/error.hpp>

#include <exception>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

namespace reagent::inline v0 {

enum class branch_status : unsigned char {
    not_started,  ///< the group ended before its turn came
    value,        ///< it returned
    failed,       ///< it threw
    cancelled,    ///< it ended with a cancellation
};

/// How one branch of a group ended: with a value, an exception, or not at all.
template <class T>
class branch_outcome {
public:
    using value_type = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

    branch_outcome() = default;
    branch_status status() const noexcept { return status_; }
    bool has_value() const noexcept { return status_ == branch_status::value; }
    explicit operator bool() const noexcept { return has_value(); }
    /// Precondition: `has_value()`.
    value_type& value() { return *value_; }
    const value_type& value() const { return *value_; }
    /// The exception of a failed or cancelled branch, else null.
    const std::exception_ptr& failure() const noexcept { return failure_; }

    void set_value(value_type v)
    {
        value_.emplace(std::move(v));
        status_ = branch_status::value;
    }
    void set_failure(std::exception_ptr e) noexcept
    {
        status_ = is_cancellation(e) ? branch_status::cancelled : branch_status::failed;
        failure_ = std::move(e);
    }

private:
    std::optional<value_type> value_;
    std::exception_ptr failure_;
    branch_status status_ = branch_status::not_started;
};

/// Awaits `operation` and writes down how it ended; itself never throws. Lifetimes: `out` must live until it is done.
template <class T>
awaitable<void> record_outcome(awaitable<T> operation, branch_outcome<T>* out)
{
    try {
        if constexpr (std::is_void_v<T>) {
            co_await std::move(operation);
            out->set_value(std::monostate());
        } else {
            T value = co_await std::move(operation);
            out->set_value(std::move(value));
        }
    } catch (...) {
        out->set_failure(std::current_exception());
    }
}

}  // namespace reagent::inline v0
