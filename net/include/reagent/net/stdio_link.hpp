#pragma once
#include <reagent/net/child_process.hpp>
#include <reagent/net/line_framer.hpp>
#include <reagent/net/message_link.hpp>

#include <cstdint>
#include <memory>

namespace reagent::inline v0 {

class stdio_link_options {
public:
    stdio_link_options() = default;
    std::size_t max_line = line_framer::default_max_line;
    bool skip_long_lines = false;  ///< passes over a line above `max_line`; else the link breaks, `errc::limit_exceeded`
};

/// Messages as lines of a child process's standard input and output (spec/orchestration.md §23.7). Its end is the end of the process; the obituary
/// holds how it exited and the last 500 characters of its standard error.
class stdio_link final : public message_link {
public:
    /// Throws `spawn_error`.
    stdio_link(any_io_executor ex, process_options process, stdio_link_options options = {});
    ~stdio_link() override;
    awaitable<bool> read(message_batch& to) override;
    /// A message with a line break in it is a `validation_error`.
    awaitable<void> write(std::string_view message) override;
    bool alive() const noexcept override;
    awaitable<void> close() override;
    awaitable<std::string> obituary() override;
    void abandon() noexcept override;

    child_process& process() noexcept;
    /// Lines that were passed over for their length.
    std::uint64_t long_lines() const noexcept;

private:
    struct impl;
    static awaitable<bool> read_body(std::shared_ptr<impl> self, message_batch& to);
    static awaitable<void> write_body(std::shared_ptr<impl> self, std::string line);
    static awaitable<void> close_body(std::shared_ptr<impl> self);
    static awaitable<std::string> obituary_body(std::shared_ptr<impl> self);
    std::shared_ptr<impl> impl_;
};

}  // namespace reagent::inline v0
