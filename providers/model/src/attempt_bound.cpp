#include <reagent/model/attempt_bound.hpp>
#include <reagent/model/model_table.hpp>

#include <algorithm>

namespace reagent::inline v0 {

namespace {

std::uint64_t saturated_sum(std::uint64_t a, std::uint64_t b) noexcept
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

}  // namespace

std::uint64_t input_bound(std::uint64_t body_bytes, std::span<const message_ptr> messages, std::string_view model) noexcept
{
    const model_info* known = nullptr;
    bool looked = false;
    std::uint64_t images = 0, inline_bytes = 0;
    for (const message_ptr& m : messages) {
        for (const part& p : m->parts) {
            const auto* image = std::get_if<image_part>(&p);
            if (image == nullptr) continue;
            if (!looked) known = find_model(model);
            looked = true;
            std::uint64_t tokens = unknown_image_tokens;
            if (known != nullptr && known->image_high != 0) tokens = image->detail == "low" ? known->image_low : known->image_high;
            images = saturated_sum(images, tokens);
            inline_bytes += image->data_base64.size();
        }
    }
    return saturated_sum(body_bytes - std::min(body_bytes, inline_bytes), images);
}

std::uint64_t input_bound(std::span<const message_ptr> messages, const tool_list& tools, std::string_view model)
{
    std::uint64_t bytes = model.size() + 64;
    std::string text;
    for (const message_ptr& m : messages) {
        text.clear();
        m->to_json().dump_to(text);
        bytes += text.size() + 1;
    }
    if (tools) {
        for (const tool_schema& t : *tools) {
            text.clear();
            append_json_string(text, t.name);
            append_json_string(text, t.description);
            t.parameters.dump_to(text);
            bytes += text.size() + 80;
        }
    }
    return input_bound(bytes, messages, model);
}

std::optional<std::uint64_t> output_bound(std::optional<std::uint64_t> max_tokens, std::string_view model) noexcept
{
    if (max_tokens.value_or(0) != 0) return max_tokens;
    const model_info* known = find_model(model);
    if (known == nullptr || known->max_output == 0) return std::nullopt;
    return known->max_output;
}

}  // namespace reagent::inline v0
