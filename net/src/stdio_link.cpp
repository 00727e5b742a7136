#include <reagent/net/stdio_link.hpp>

#include <reagent/base/untrusted_text.hpp>
#include <reagent/base/with_deadline.hpp>

#include <optional>
#include <utility>

namespace reagent::inline v0 {
namespace {

// The end of the output and the end of the process come apart; the words wait this long for the second.
constexpr std::chrono::milliseconds exit_patience{50};
constexpr std::size_t quoted_errors = 500;

awaitable<void> await_exit(awaitable<exit_status> end)
{
    const exit_status status = co_await std::move(end);
    static_cast<void>(status);
}

}  // namespace

struct stdio_link::impl {
    impl(any_io_executor ex, process_options p, stdio_link_options o)
        : options(o), framer(o.max_line), time(p.clock ? p.clock : clock::system()), process(std::in_place, std::move(ex), std::move(p))
    {}
    child_process& running()
    {
        if (!process) throw error(errc::closed, "[stdio] the link was abandoned");
        return *process;
    }
    stdio_link_options options;
    line_framer framer;
    clock_ptr time;
    std::optional<child_process> process;
    std::string bytes;
    std::uint64_t long_lines = 0;
    bool at_end = false;  // of its output
    bool broken = false;
    bool closing = false;
};

stdio_link::stdio_link(any_io_executor ex, process_options process, stdio_link_options options)
    : impl_(std::make_shared<impl>(std::move(ex), std::move(process), options))
{}
stdio_link::~stdio_link()
{
    abandon();
}

awaitable<bool> stdio_link::read_body(std::shared_ptr<impl> self, message_batch& to)
{
    to.clear();
    bool ended = false;
    while (to.empty() && !ended) {
        self->bytes.clear();
        const bool more = co_await self->running().read(self->bytes);
        self->framer.feed(self->bytes);
        framed_line line;
        ended = self->at_end = !more;
        while (more ? self->framer.next(line) : self->framer.finish(line)) {
            if (!line.too_long) {
                to.add(line.text);
                continue;
            }
            ++self->long_lines;
            if (self->options.skip_long_lines) continue;
            self->broken = true;
            throw error(errc::limit_exceeded, "[stdio] a line is longer than " + std::to_string(self->options.max_line) + " bytes");
        }
    }
    if (ended && to.empty()) self->broken = true;
    co_return !to.empty();
}

awaitable<void> stdio_link::write_body(std::shared_ptr<impl> self, std::string line)
{
    try {
        co_await self->running().write(line);
    } catch (...) {
        // Whatever it was: a part of the line may be in the pipe.
        self->broken = true;
        throw;
    }
}

awaitable<void> stdio_link::close_body(std::shared_ptr<impl> self)
{
    self->closing = true;
    if (self->process) {
        const exit_status status = co_await self->process->stop();
        static_cast<void>(status);
    }
}

awaitable<std::string> stdio_link::obituary_body(std::shared_ptr<impl> self)
{
    if (!self->process) co_return "the link was abandoned";
    branch_outcome<void> exit;
    awaitable<void> end = with_deadline(self->time, self->time->now() + exit_patience, await_exit(self->process->wait()));
    co_await record_outcome<void>(std::move(end), &exit);
    if (!self->process) co_return "the link was abandoned";
    const exit_status status = self->process->status();
    std::string words = (status.how() == exit_status::kind::killed ? "was " : "") + status.text();
    if (status.how() == exit_status::kind::running) words = self->at_end ? "closed its output" : "is still running";
    std::string tail = self->process->error_tail();
    if (tail.size() > 4 * quoted_errors) tail.erase(0, tail.size() - 4 * quoted_errors);
    tail = untrusted_text(tail, 4 * quoted_errors);
    // From the end, at the start of a character.
    std::size_t at = tail.size() > quoted_errors ? tail.size() - quoted_errors : 0;
    while (at < tail.size() && (static_cast<unsigned char>(tail[at]) & 0xC0) == 0x80) ++at;
    if (at < tail.size()) words += ": " + tail.substr(at);
    co_return words;
}

awaitable<bool> stdio_link::read(message_batch& to)
{
    return read_body(impl_, to);
}

awaitable<void> stdio_link::write(std::string_view message)
{
    if (message.find('\n') != std::string_view::npos) throw validation_error("[stdio] a message with a line break cannot be a line");
    std::string line;
    line.reserve(message.size() + 1);
    line += message;
    line += '\n';
    return write_body(impl_, std::move(line));
}

bool stdio_link::alive() const noexcept
{
    return impl_->process && !impl_->broken && !impl_->closing;
}
awaitable<void> stdio_link::close()
{
    return close_body(impl_);
}
awaitable<std::string> stdio_link::obituary()
{
    return obituary_body(impl_);
}
void stdio_link::abandon() noexcept
{
    impl_->process.reset();
}
child_process& stdio_link::process() noexcept
{
    return *impl_->process;
}
std::uint64_t stdio_link::long_lines() const noexcept
{
    return impl_->long_lines;
}

}  // namespace reagent::inline v0
