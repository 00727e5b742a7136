#pragma once
#include <reagent/base/asio.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace reagent::inline v0 {

/// The messages of one wake-up, their bytes together.
class message_batch {
public:
    std::size_t size() const noexcept { return ends_.size(); }
    bool empty() const noexcept { return ends_.empty(); }
    /// Views live until the next `clear` or `add`.
    std::string_view operator[](std::size_t i) const
    {
        const std::size_t start = i == 0 ? 0 : ends_[i - 1];
        return std::string_view(bytes_).substr(start, ends_[i] - start);
    }
    void add(std::string_view message)
    {
        bytes_ += message;
        ends_.push_back(bytes_.size());
    }
    void clear()
    {
        // The room of a large answer is given back.
        if (bytes_.capacity() > 1024 * 1024) bytes_ = std::string();
        else bytes_.clear();
        ends_.clear();
    }

private:
    std::string bytes_;
    std::vector<std::size_t> ends_;
};

/// A two-way channel of whole messages: lines of a child process, posts of HTTP. Reading and writing go on side by side, one of each at a time. Lives on
/// the executor of whoever uses it; its operations are cancelled by terminal.
class message_link {
public:
    message_link() = default;
    message_link(const message_link&) = delete;
    message_link& operator=(const message_link&) = delete;
    virtual ~message_link() = default;
    /// Replaces `to` with the next messages, at least one; false at the end. Throws `reagent::error` when the link is broken.
    virtual awaitable<bool> read(message_batch& to) = 0;
    /// Sends one message whole. Throws `reagent::error`: when `alive` still holds afterwards, this message alone has failed.
    virtual awaitable<void> write(std::string_view message) = 0;
    virtual bool alive() const noexcept = 0;
    /// Ends the link and all it owns. Reads and writes under way end. Idempotent.
    virtual awaitable<void> close() = 0;
    /// Why it ended, in words; may wait a moment (50 ms) for them.
    virtual awaitable<std::string> obituary() = 0;
    /// Gives up at once, without waiting; what is under way ends.
    virtual void abandon() noexcept = 0;
};

}  // namespace reagent::inline v0
