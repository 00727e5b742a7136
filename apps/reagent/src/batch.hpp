#pragma once
#include <reagent/base/json.hpp>

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace reagent_app {

/// The batch form of a command: JSON lines on standard input, one answer a line in the same order with the same `id`. A bad line is answered with
/// `{"id", "error":{"kind":"usage","message"}}` and the batch goes on. Blank lines are skipped. The status is 0 once the input has ended.
int run_batch(const std::function<reagent::json(const reagent::json&)>& answer);

/// Most bytes of a file or of standard input that are taken as one text.
inline constexpr std::size_t largest_text = std::size_t{64} << 20U;
/// The file's text without a byte order mark, `-` for standard input. Throws `config_error` naming the file, also for more than `largest_text`.
std::string read_text(const std::string& path);
/// One JSON value from a command line argument that is JSON itself, `@FILE` or `-`. Throws `config_error`.
reagent::json read_json_argument(const std::string& text, std::string_view what);

}  // namespace reagent_app
