#pragma once
#include <memory>
#include <optional>
#include <utility>

namespace reagent::inline v0 {

/// An optional value that is seldom there: as `std::optional`, but a pointer in size, with the value on the heap. For members of what is moved often. A copy copies
/// the value. Distinct objects may be used from different threads.
template <class T>
class rare {
public:
    rare() noexcept = default;
    rare(std::nullopt_t) noexcept {}
    rare(T value) : value_(std::make_unique<T>(std::move(value))) {}
    rare(std::optional<T> value)
    {
        if (value) emplace(std::move(*value));
    }
    rare(const rare& other) : value_(other.value_ ? std::make_unique<T>(*other.value_) : nullptr) {}
    rare(rare&&) noexcept = default;
    rare& operator=(const rare& other) { return *this = rare(other); }
    rare& operator=(rare&&) noexcept = default;
    ~rare() = default;

    template <class... Args>
    T& emplace(Args&&... args)
    {
        value_ = std::make_unique<T>(std::forward<Args>(args)...);
        return *value_;
    }
    void reset() noexcept { value_.reset(); }
    bool has_value() const noexcept { return value_ != nullptr; }
    explicit operator bool() const noexcept { return value_ != nullptr; }
    /// Of one that is there.
    T& operator*() noexcept { return *value_; }
    const T& operator*() const noexcept { return *value_; }
    T* operator->() noexcept { return value_.get(); }
    const T* operator->() const noexcept { return value_.get(); }
    /// Throws `std::bad_optional_access` when there is none.
    const T& value() const
    {
        if (!value_) throw std::bad_optional_access();
        return *value_;
    }
    friend bool operator==(const rare& a, const rare& b) { return a.value_ && b.value_ ? *a.value_ == *b.value_ : !a.value_ && !b.value_; }

private:
    std::unique_ptr<T> value_;
};

}  // namespace reagent::inline v0
