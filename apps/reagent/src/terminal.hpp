#pragma once
#include <reagent/base/log_sink.hpp>

#include <string>
#include <string_view>

namespace reagent_app {

/// What the program prints: data on standard output, messages on standard error. The only place that writes.
class terminal {
public:
    terminal();
    bool out_is_tty() const noexcept { return out_tty_; }
    bool err_is_tty() const noexcept { return err_tty_; }

    /// Model text as it streams. On a terminal its control characters are dropped: a model must not drive the terminal.
    void stream(std::string_view text);
    /// Ends a streamed line that is still open.
    void end_stream();
    /// One line of data.
    void data(std::string_view line);
    /// Hands over what `data` has gathered: a partner waits for it. False when standard output took it no more.
    bool flush();
    /// Whether standard output has refused something.
    bool broken() const;
    /// One message; line breaks and control characters inside become blanks.
    void note(std::string_view message);
    /// A dimmed message, for what merely accompanies the work.
    void aside(std::string_view message);
    /// A line that the next one overwrites. Nothing when standard error is no terminal.
    void progress(std::string_view line);
    void clear_progress();

    /// Lines of at least that level, as messages.
    reagent::log_sink log(reagent::log_level least);

private:
    bool out_tty_, err_tty_, color_;
    bool line_open_ = false, progress_shown_ = false;
};

/// `text` without the characters that drive a terminal: C0 but for line feed and tab, DEL, C1.
std::string without_controls(std::string_view text);
/// `text` on one line, without control characters and ill-formed UTF-8, cut to `max` characters.
std::string one_line(std::string_view text, std::size_t max = 2000);
/// `1,234,567`.
std::string grouped(unsigned long long n);

}  // namespace reagent_app
