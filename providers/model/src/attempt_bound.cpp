#include <reagent/model/attempt_bound.hpp>
#include <reagent/model/model_table.hpp>

#include <algorithm>

namespace reagent::inline v0 {

namespace {

std::uint64_t saturated_sum(std::uint64_t a, std::uint64_t b) noexcept
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/// The image of a part, or what may become one or more on the other side: `image_url`, `file` by id and any part whose bytes are not in the body.
/// Its detail, when it says one.
std::optional<std::string_view> image_detail(const part& p) noexcept
{
    if (const auto* image = std::get_if<image_part>(&p)) return image->detail;
    const auto* native = std::get_if<native_part>(&p);
    if (native == nullptr) return std::nullopt;
    const std::string* type = native->value["type"].get_string();
    if (type != nullptr && (*type == "text" || *type == "refusal" || *type == "input_audio")) return std::nullopt;
    const std::string* detail = native->value["image_url"]["detail"].get_string();
    if (detail == nullptr) detail = native->value["detail"].get_string();
    return detail == nullptr ? std::string_view() : std::string_view(*detail);
}

}  // namespace

std::uint64_t input_bound(std::uint64_t body_bytes, std::span<const message_ptr> messages, std::string_view model) noexcept
{
    const model_info* known = nullptr;
    bool looked = false;
    std::uint64_t images = 0, inline_bytes = 0;
    for (const message_ptr& m : messages) {
        for (const part& p : m->parts) {
            const std::optional<std::string_view> detail = image_detail(p);
            if (!detail) continue;
            if (!looked) known = find_model(model);
            looked = true;
            std::uint64_t tokens = unknown_image_tokens;
            if (known != nullptr && known->image_high != 0) tokens = *detail == "low" ? known->image_low : known->image_high;
            images = saturated_sum(images, tokens);
            if (const auto* image = std::get_if<image_part>(&p)) inline_bytes += image->data_base64.size();
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
    if (max_tokens) return max_tokens;
    const model_info* known = find_model(model);
    if (known == nullptr) return std::nullopt;
    return known->max_output;
}

}  // namespace reagent::inline v0
