#include <reagent/base/ascii.hpp>
#include <reagent/testing/http_text.hpp>

#include <reagent/net/http_reason.hpp>

#include <zlib.h>

#include <array>
#include <cstdio>
#include <stdexcept>

namespace reagent::inline v0::testing {

namespace {

void default_type(header_list& headers, std::string_view type)
{
    for (const auto& [name, value] : headers) {
        if (equal_but_case(name, "content-type")) return;
    }
    headers.insert(headers.begin(), {"content-type", std::string(type)});
}

std::string quoted(std::string_view text)
{
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') {
            out += '\\';
            out += c;
        } else if (static_cast<unsigned char>(c) < 0x20) {
            std::array<char, 8> escape{};
            std::snprintf(escape.data(), escape.size(), "\\u%04x", static_cast<unsigned>(c));
            out += escape.data();
        } else {
            out += c;
        }
    }
    return out + '"';
}

std::string deflated(std::string_view bytes, int window_bits)
{
    z_stream z{};
    if (deflateInit2(&z, Z_BEST_SPEED, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY) != Z_OK) throw std::runtime_error("deflateInit2");
    std::string out(deflateBound(&z, static_cast<uLong>(bytes.size())) + 32, '\0');
    std::string in(bytes);
    z.next_in = reinterpret_cast<Bytef*>(in.data());
    z.avail_in = static_cast<uInt>(in.size());
    z.next_out = reinterpret_cast<Bytef*>(out.data());
    z.avail_out = static_cast<uInt>(out.size());
    const int status = ::deflate(&z, Z_FINISH);
    out.resize(z.total_out);
    deflateEnd(&z);
    if (status != Z_STREAM_END) throw std::runtime_error("deflate");
    return out;
}

std::string usage_json(int prompt_tokens, int completion_tokens)
{
    return "{\"prompt_tokens\":" + std::to_string(prompt_tokens) + ",\"completion_tokens\":" + std::to_string(completion_tokens) +
        ",\"total_tokens\":" + std::to_string(prompt_tokens + completion_tokens) + "}";
}

}  // namespace

std::string http_head(int status, const header_list& headers)
{
    std::string out = "HTTP/1.1 " + std::to_string(status) + ' ' + std::string(http_reason(static_cast<unsigned>(status))) + "\r\n";
    for (const auto& [name, value] : headers) out += name + ": " + value + "\r\n";
    return out + "\r\n";
}

std::string http_response(int status, std::string_view body, header_list headers)
{
    default_type(headers, "application/json");
    headers.emplace_back("content-length", std::to_string(body.size()));
    return http_head(status, headers) + std::string(body);
}

std::string http_chunked(int status, const std::vector<std::string>& pieces, header_list headers)
{
    default_type(headers, "application/json");
    headers.emplace_back("transfer-encoding", "chunked");
    std::string out = http_head(status, headers);
    for (const std::string& piece : pieces) {
        if (!piece.empty()) out += http_chunk(piece);
    }
    return out + http_chunk({});
}

std::string http_until_close(int status, std::string_view body, header_list headers)
{
    default_type(headers, "application/json");
    headers.emplace_back("connection", "close");
    return http_head(status, headers) + std::string(body);
}

std::string http_chunk(std::string_view piece)
{
    std::array<char, 24> size{};
    std::snprintf(size.data(), size.size(), "%zx\r\n", piece.size());
    return size.data() + std::string(piece) + "\r\n";
}

std::string sse_head(header_list headers)
{
    default_type(headers, "text/event-stream");
    headers.emplace_back("transfer-encoding", "chunked");
    return http_head(200, headers);
}

std::string sse_event(std::string_view data)
{
    return "data: " + std::string(data) + "\n\n";
}

std::string sse_response(const std::vector<std::string>& events, header_list headers)
{
    std::string out = sse_head(std::move(headers));
    for (const std::string& event : events) out += http_chunk(sse_event(event));
    return out + http_chunk({});
}

std::string gzip(std::string_view bytes)
{
    return deflated(bytes, 15 + 16);
}
std::string zlib_deflate(std::string_view bytes)
{
    return deflated(bytes, 15);
}

std::string openai_answer(std::string_view text, int prompt_tokens, int completion_tokens)
{
    return R"({"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"test","choices":[{"index":0,"message":{"role":"assistant","content":)" +
        quoted(text) + R"(},"finish_reason":"stop"}],"usage":)" + usage_json(prompt_tokens, completion_tokens) + "}";
}

std::vector<std::string> openai_events(const std::vector<std::string>& deltas, int prompt_tokens, int completion_tokens)
{
    const std::string start = R"({"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"test","choices":)";
    std::vector<std::string> out;
    for (const std::string& delta : deltas) { out.push_back(start + R"([{"index":0,"delta":{"content":)" + quoted(delta) + R"(},"finish_reason":null}]})"); }
    out.push_back(start + R"([{"index":0,"delta":{},"finish_reason":"stop"}]})");
    out.push_back(start + R"([],"usage":)" + usage_json(prompt_tokens, completion_tokens) + "}");
    out.emplace_back("[DONE]");
    return out;
}

}  // namespace reagent::inline v0::testing
