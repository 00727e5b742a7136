#include "anthropic_messages.hpp"

#include "anthropic_blocks.hpp"
#include "encode_common.hpp"

#include <reagent/base/blank.hpp>
#include <reagent/base/error.hpp>
#include <reagent/model/http_failure.hpp>

#include <algorithm>

namespace reagent::inline v0::model_detail {

namespace anthropic_messages {
namespace {

/// Writes the blocks of one content array.
class block_writer {
public:
    explicit block_writer(std::string& out) : out_(out) { out_ += '['; }

    void text(std::string_view t)
    {
        open(R"({"type":"text","text":)");
        append_json_string(out_, t);
        out_ += '}';
        markable_ = !t.empty();
    }
    void image(const image_part& i)
    {
        const bool by_url = !i.url.empty();
        open(R"({"type":"image","source":{"type":)");
        out_ += by_url ? R"("url","url":)" : R"("base64","media_type":)";
        append_json_string(out_, by_url ? i.url : i.media_type);
        if (!by_url) {
            out_ += R"(,"data":)";
            append_json_string(out_, i.data_base64);
        }
        out_ += "}}";
    }
    void native(const json& block)
    {
        open({});
        block.dump_to(out_);
        const std::string* type = block["type"].get_string();
        // Thinking takes no mark, and whoever set one knows better.
        markable_ = type != nullptr && *type != "thinking" && *type != "redacted_thinking" && block.find("cache_control") == nullptr;
        if (markable_ && *type == "text") markable_ = !block["text"].is_string() || !block["text"].as_string().empty();
    }
    void thinking(const thinking_part& t)
    {
        if (t.signature.empty()) return;  // which the service asks for
        open(R"({"type":"thinking","thinking":)");
        append_json_string(out_, t.text);
        out_ += R"(,"signature":)";
        append_json_string(out_, t.signature);
        out_ += '}';
        markable_ = false;
    }
    void call(const tool_call& c)
    {
        open(R"({"type":"tool_use","id":)");
        append_json_string(out_, c.id);
        out_ += R"(,"name":)";
        append_json_string(out_, c.name);
        out_ += R"(,"input":)";
        append_arguments(out_, c.arguments);
        out_ += '}';
    }
    void result(const message& m)
    {
        open(R"({"type":"tool_result","tool_use_id":)");
        append_json_string(out_, m.tool_call_id);
        out_ += R"(,"content":)";
        const bool only_text = std::all_of(m.parts.begin(), m.parts.end(), [](const part& p) {
            const auto* native = std::get_if<native_part>(&p);
            return native != nullptr ? is_text(*native) : !std::holds_alternative<image_part>(p);
        });
        if (only_text) {
            append_json_string(out_, m.text());
        } else {
            block_writer inner(out_);
            inner.parts(m, true);
            inner.close({});
        }
        out_ += '}';
        markable_ = true;
    }
    /// What the content itself holds, in its order.
    void parts(const message& m, bool skip_blank)
    {
        for (const part& p : m.parts) {
            if (const auto* t = std::get_if<text_part>(&p)) {
                if (!skip_blank || !is_blank(t->text)) text(t->text);
            } else if (const auto* i = std::get_if<image_part>(&p)) {
                image(*i);
            } else if (const auto* n = std::get_if<native_part>(&p)) {
                native(n->value);
            } else if (const auto* k = std::get_if<thinking_part>(&p)) {
                thinking(*k);
            }
        }
    }
    /// `mark` goes into the last block, if that can take one.
    void close(std::string_view mark)
    {
        if (markable_ && !mark.empty()) out_.insert(out_.size() - 1, mark);
        out_ += ']';
    }

    bool empty() const noexcept { return first_; }

private:
    void open(std::string_view with)
    {
        if (!first_) out_ += ',';
        first_ = false;
        markable_ = true;
        out_ += with;
    }
    std::string& out_;
    bool first_ = true, markable_ = false;
};

bool is_call(const part& p) noexcept
{
    return std::holds_alternative<tool_call>(p);
}

/// The text of a content that is nothing but a string; null when it is more.
const std::string* plain_content(const message& m) noexcept
{
    static const std::string none;
    const std::string* only = &none;
    for (const part& p : m.parts) {
        const auto* t = std::get_if<text_part>(&p);
        const bool elsewhere = is_call(p) || std::holds_alternative<provider_blocks>(p);
        if (elsewhere) continue;
        if (t == nullptr || only != &none) return nullptr;
        only = &t->text;
    }
    return m.content_parts ? nullptr : only;
}

/// An assistant message with calls or native blocks.
void append_blocks(const message& m, const provider_blocks* own, std::string& out, std::string_view mark)
{
    const std::vector<const tool_call*> calls = m.calls();
    const std::string* text = plain_content(m);
    block_writer w(out);
    std::vector<block_order::item> order;
    if (own != nullptr && own->layout.is_object() && text != nullptr)
        order = block_order::read(own->layout, is_blank(*text) ? std::string_view() : *text, calls, own->blocks.size());
    if (!order.empty()) {
        std::string_view rest = *text;
        for (const block_order::item& i : order) {
            if (i.what == block_order::kind::block) w.native(own->blocks[i.n]);
            else if (i.what == block_order::kind::call) w.call(*calls[i.n]);
            else {
                if (!is_blank(rest.substr(0, i.n))) w.text(rest.substr(0, i.n));
                rest.remove_prefix(i.n);
            }
        }
    } else {
        if (own != nullptr)
            for (const json& b : own->blocks.as_array()) w.native(b);
        w.parts(m, true);
        for (const tool_call* c : calls) w.call(*c);
    }
    w.close(mark);
}

void append_turn(const anthropic_codec& codec, const message& m, std::string& out, std::string_view mark)
{
    const provider_blocks* own = m.who == role::assistant ? own_blocks(m, codec.provider_name()) : nullptr;
    if (own != nullptr && own->model != codec.model()) own = nullptr;  // another model cannot read them
    const bool calls = m.who == role::assistant && std::any_of(m.parts.begin(), m.parts.end(), &is_call);
    const std::string* text = plain_content(m);
    if (m.content_null && own == nullptr && !calls && text != nullptr && text->empty()) return;
    out += R"({"role":)";
    append_json_string(out, m.who == role::other ? std::string_view(m.role_name) : to_string(m.who));
    out += R"(,"content":)";
    if (own != nullptr || calls) {
        append_blocks(m, own, out, mark);
    } else if (text != nullptr && (mark.empty() || text->empty())) {
        append_json_string(out, *text);
    } else {
        block_writer w(out);
        w.parts(m, false);
        w.close(mark);
    }
    out += '}';
}

}  // namespace
}  // namespace anthropic_messages

using namespace anthropic_messages;

void append_anthropic_item(const anthropic_codec& codec, std::span<const message_ptr> so_far, std::size_t at, std::string& out, std::string_view mark)
{
    const role who = so_far[at]->who;
    if (who == role::system) return;  // stands beside the messages
    if (who != role::tool) return append_turn(codec, *so_far[at], out, mark);
    out += R"({"role":"user","content":)";
    block_writer w(out);
    for (; at < so_far.size(); ++at) w.result(*so_far[at]);
    w.close(mark);
    out += '}';
}

namespace anthropic_messages {
namespace {

void append_unmarked(const void* codec, std::span<const message_ptr> so_far, std::size_t at, std::string& out)
{
    append_anthropic_item(*static_cast<const anthropic_codec*>(codec), so_far, at, out, {});
}

/// The results of a round are one message.
bool same_tool_round(const message& before, const message& next)
{
    return before.who == role::tool && next.who == role::tool;
}

}  // namespace
}  // namespace anthropic_messages

message_items anthropic_items() noexcept
{
    return message_items(&append_unmarked, &same_tool_round);
}

void append_anthropic_system(std::string& out, const generate_request& request, std::string_view mark)
{
    constexpr std::string_view name = R"(,"system":)";
    std::string joined;
    const json* given = request.options.system ? &*request.options.system : nullptr;
    bool arrays = given != nullptr && given->is_array();
    if (given != nullptr) {
        if (const std::string* text = given->get_string()) joined = *text;
        else if (!arrays && !given->is_null()) throw validation_error(prefixed(anthropic_component, "system must be a string or an array of blocks"));
    } else {
        for (const message_ptr& m : request.messages) {
            if (m->who != role::system) continue;
            const std::string* text = plain_content(*m);
            arrays = arrays || text == nullptr;
            if (text == nullptr || text->empty()) continue;
            if (!joined.empty()) joined += "\n\n";
            joined += *text;
        }
    }
    if (given != nullptr && arrays) {
        if (given->empty()) return;
        out += name;
        given->dump_to(out);
    } else if (arrays) {
        const std::size_t before = out.size();
        out += name;
        block_writer w(out);
        for (const message_ptr& m : request.messages)
            if (m->who == role::system) w.parts(*m, !m->content_parts);
        w.close({});
        if (w.empty()) out.resize(before);
    } else if (!joined.empty()) {
        out += name;
        if (mark.empty()) return append_json_string(out, joined);
        block_writer w(out);
        w.text(joined);
        w.close(mark);
    }
}

}  // namespace reagent::inline v0::model_detail
