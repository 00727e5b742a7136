/// HTTP as text, for scripts of `byte_server`.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace reagent::inline v0::testing {

using header_list = std::vector<std::pair<std::string, std::string>>;

/// `HTTP/1.1 200 OK` and the headers, with the blank line.
std::string http_head(int status, const header_list& headers);
/// A response with content-length; JSON unless a content type is among the headers.
std::string http_response(int status, std::string_view body, header_list headers = {});
/// The same with a chunked body, one chunk for each piece.
std::string http_chunked(int status, const std::vector<std::string>& pieces, header_list headers = {});
/// The same ended by closing: follow it with `close()`.
std::string http_until_close(int status, std::string_view body, header_list headers = {});
/// One chunk; the empty piece gives the last chunk.
std::string http_chunk(std::string_view piece);

/// The head of an event stream, chunked; follow with chunks of `sse_event` and the last chunk.
std::string sse_head(header_list headers = {});
/// `data: …` and the blank line.
std::string sse_event(std::string_view data);
/// A whole chunked event stream, one chunk for each event.
std::string sse_response(const std::vector<std::string>& events, header_list headers = {});

/// The bytes in gzip or zlib ("deflate") coding.
std::string gzip(std::string_view bytes);
std::string zlib_deflate(std::string_view bytes);

/// A chat completion in the OpenAI wire: the text answer as one JSON body, and as the events of a stream (`[DONE]` included).
std::string openai_answer(std::string_view text, int prompt_tokens = 10, int completion_tokens = 5);
std::vector<std::string> openai_events(const std::vector<std::string>& deltas, int prompt_tokens = 10, int completion_tokens = 5);

}  // namespace reagent::inline v0::testing
