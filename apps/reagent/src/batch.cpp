#include "batch.hpp"

#include "commands.hpp"
#include "terminal.hpp"

#include <reagent/base/error.hpp>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>

namespace reagent_app {
namespace {

reagent::json usage_error(std::string_view message)
{
    return reagent::json::object().set("error", reagent::json::object().set("kind", "usage").set("message", message));
}

reagent::json answer_line(const std::string& line, const std::function<reagent::json(const reagent::json&)>& answer)
{
    std::size_t offset = 0;
    auto parsed = reagent::json::parse(line, {}, offset);
    if (!parsed) return reagent::json::object().set("id", nullptr).set("error", usage_error("the line is not JSON at byte " + std::to_string(offset))["error"]);
    const reagent::json& in = *parsed;
    reagent::json out;
    if (!in.is_object()) {
        out = usage_error("the line is not an object");
    } else {
        try {
            out = answer(in);
        } catch (const std::exception& e) {
            out = usage_error(e.what());
        }
    }
    reagent::json with_id = reagent::json::object().set("id", in["id"]);
    if (out.is_object())
        for (reagent::json::member& m : out.as_object()) with_id.set(std::move(m.first), std::move(m.second));
    return with_id;
}

bool blank(const std::string& line)
{
    return line.find_first_not_of(" \t\r") == std::string::npos;
}

}  // namespace

int run_batch(const std::function<reagent::json(const reagent::json&)>& answer)
{
    std::ios::sync_with_stdio(false);
    terminal out;
    for (std::string line; std::getline(std::cin, line);) {
        if (blank(line)) continue;
        out.data(answer_line(line, answer).dump());
        // Nobody reads any more: the exit status says so, further work would be for nothing.
        if (out.broken()) break;
        // An interactive partner reads each answer before it sends the next line.
        if (std::cin.rdbuf()->in_avail() <= 0 && !out.flush()) break;
    }
    if (std::cin.bad()) throw reagent::config_error("standard input: cannot be read: " + std::string(std::strerror(errno)));
    return exit_ok;
}

std::string read_text(const std::string& path)
{
    std::FILE* file = path == "-" ? stdin : std::fopen(path.c_str(), "re");
    const std::string name = file == stdin ? "standard input" : path;
    if (!file) throw reagent::config_error(name + ": cannot be read: " + std::strerror(errno));
    std::string text;
    char piece[16384];
    std::size_t n = 0;
    while (text.size() <= largest_text && (n = std::fread(piece, 1, sizeof piece, file)) > 0) text.append(piece, n);
    const int failed = std::ferror(file) ? errno : 0;
    if (file != stdin) std::fclose(file);
    if (failed) throw reagent::config_error(name + ": cannot be read: " + std::strerror(failed));
    if (text.size() > largest_text)
        throw reagent::config_error(name + ": is longer than the " + std::to_string(largest_text >> 20U) + " MiB that are read at most");
    // Some editors put a byte order mark before everything (RFC 8259 §8.1 lets a reader ignore it).
    if (text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3);
    return text;
}

reagent::json read_json_argument(const std::string& text, std::string_view what)
{
    const bool from_file = text == "-" || text.starts_with('@');
    const std::string content = from_file ? read_text(text == "-" ? text : text.substr(1)) : text;
    std::size_t offset = 0;
    auto parsed = reagent::json::parse(content, {}, offset);
    if (!parsed) throw reagent::config_error(std::string(what) + ": not JSON at byte " + std::to_string(offset));
    return std::move(*parsed);
}

}  // namespace reagent_app
