#pragma once
#include <reagent/net/http_client.hpp>
#include <reagent/net/ndjson.hpp>

#include <cstddef>
#include <exception>
#include <utility>
#include <vector>

namespace reagent::inline v0 {

/// The values of an NDJSON answer as they come. Stricter than `ndjson_reader`: a line that is no JSON, or longer than `max_line` bytes, ends it.
class ndjson_body {
public:
    explicit ndjson_body(http_exchange body, std::size_t max_line = line_framer::default_max_line) : body_(std::move(body)), reader_(max_line) {}
    /// Replaces `values` with those that have come, at least one; false at the end of the body, whose last line needs no line end.
    /// Errors: those of `http_exchange::read_some`; `transport_error(errc::invalid_json | event_too_large)` naming the line, after the values before it, and again
    /// at each later call. Cancellation: as `read_some`.
    awaitable<bool> read(std::vector<json>& values);
    const http_exchange& exchange() const noexcept { return body_; }

private:
    void take(ndjson_item& item, std::vector<json>& values);
    http_exchange body_;
    ndjson_reader reader_;
    std::exception_ptr failure_;
    bool ended_ = false;
};

}  // namespace reagent::inline v0
