#include "terminal.hpp"

#include <reagent/base/untrusted_text.hpp>

#include <cstdio>
#include <cstdlib>
#include <unistd.h>

namespace reagent_app {
namespace {

void write_all(std::FILE* file, std::string_view text)
{
    std::fwrite(text.data(), 1, text.size(), file);
}

bool wants_color(bool tty)
{
    const char* no_color = std::getenv("NO_COLOR");
    const char* term = std::getenv("TERM");
    return tty && !(no_color && *no_color) && !(term && std::string_view(term) == "dumb");
}

}  // namespace

terminal::terminal() : out_tty_(::isatty(STDOUT_FILENO) == 1), err_tty_(::isatty(STDERR_FILENO) == 1), color_(wants_color(err_tty_)) {}

void terminal::stream(std::string_view text)
{
    if (text.empty()) return;
    if (out_tty_) {
        write_all(stdout, without_controls(text));
    } else {
        write_all(stdout, text);
    }
    line_open_ = text.back() != '\n';
    std::fflush(stdout);
}

void terminal::end_stream()
{
    if (!line_open_) return;
    write_all(stdout, "\n");
    std::fflush(stdout);
    line_open_ = false;
}

void terminal::data(std::string_view line)
{
    clear_progress();
    end_stream();
    write_all(stdout, line);
    write_all(stdout, "\n");
}

bool terminal::flush()
{
    return std::fflush(stdout) == 0;
}

bool terminal::broken() const
{
    return std::ferror(stdout) != 0;
}

void terminal::note(std::string_view message)
{
    clear_progress();
    if (out_tty_) end_stream();
    write_all(stderr, one_line(message) + "\n");
}

void terminal::aside(std::string_view message)
{
    clear_progress();
    if (out_tty_) end_stream();
    const std::string line = one_line(message);
    write_all(stderr, color_ ? "\x1b[2m" + line + "\x1b[0m\n" : line + "\n");
}

void terminal::progress(std::string_view line)
{
    if (!err_tty_) return;
    write_all(stderr, "\r\x1b[K" + one_line(line, 200));
    std::fflush(stderr);
    progress_shown_ = true;
}

void terminal::clear_progress()
{
    if (!progress_shown_) return;
    write_all(stderr, "\r\x1b[K");
    std::fflush(stderr);
    progress_shown_ = false;
}

reagent::log_sink terminal::log(reagent::log_level least)
{
    return reagent::log_sink([this, least](reagent::log_level level, std::string_view line) {
        if (level < least) return;
        static constexpr std::string_view names[] = {"debug", "info", "warning", "error"};
        aside(std::string(names[static_cast<std::size_t>(level)]) + ": " + std::string(line));
    });
}

std::string without_controls(std::string_view text)
{
    std::string safe;
    safe.reserve(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
        const auto c = static_cast<unsigned char>(text[i]);
        const auto next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0U;
        if (c == 0xC2 && next >= 0x80 && next < 0xA0) ++i;  // U+0080 to U+009F
        else if ((c >= 0x20 && c != 0x7F) || c == '\n' || c == '\t') safe.push_back(text[i]);
    }
    return safe;
}

std::string one_line(std::string_view text, std::size_t max)
{
    std::string flat(text);
    for (char& c : flat)
        if (c == '\n' || c == '\r' || c == '\t') c = ' ';
    while (!flat.empty() && flat.back() == ' ') flat.pop_back();
    return reagent::untrusted_text(flat, max);
}

std::string grouped(unsigned long long n)
{
    std::string digits = std::to_string(n);
    for (std::size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, ",");
    return digits;
}

}  // namespace reagent_app
