#pragma once
#include <reagent/base/clock.hpp>
#include <reagent/base/json.hpp>
#include <reagent/model/generate.hpp>

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace reagent::inline v0 {

/// Events of one model call (spec/loop-and-providers.md §3.4) and of a run (§13.1 without `loop:`). Where both lists use one word the call's
/// keeps it: `start`, `text` are the call's; the run's are `run_start`, `final_text`.
enum class event_kind : std::uint8_t {
    start,
    text,
    thinking,
    tool_start,
    tool_args,
    tool_end,
    usage,
    stop,
    reset,
    run_start,
    assemble,
    trim,
    resume,
    truncated,
    final_text,
    tool_call,
    tool_result,
    checkpoint_ask,
    checkpoint_reply,
    retry,
    error,
    done,
};

/// One event; views and pointers live until the next `read` into its batch.
class event {
public:
    event_kind kind = event_kind::text;
    std::uint32_t round = 0;
    std::uint32_t index = 0;     ///< tool_start/args/end: position of the call; reset: attempt
    std::string_view id, name;   ///< tool events: call id and tool name; start: request id and model
    std::string_view payload;    ///< text, thinking: the delta; tool_args: the fragment; stop: the reason; error, reset: the message
    const json* data = nullptr;  ///< rare structured data (arguments, result, usage, done)
    system_time at{};            ///< when it happened or was read; a run fills it for all its events
    /// The delta of a text event, empty for all others.
    std::string_view text() const noexcept { return kind == event_kind::text ? payload : std::string_view(); }
    /// spec/loop-and-providers.md §13.1: `{type,data,ts}`, deltas as `loop:delta`.
    json to_json() const;
};

/// The events of one wake-up. It owns an arena; its memory is kept from batch to batch. Not thread safe.
class event_batch {
public:
    event_batch();
    ~event_batch();
    event_batch(event_batch&&) noexcept;
    event_batch& operator=(event_batch&&) noexcept;
    auto begin() const noexcept { return events_.begin(); }
    auto end() const noexcept { return events_.end(); }
    std::size_t size() const noexcept { return events_.size(); }
    bool empty() const noexcept { return events_.empty(); }
    const event& operator[](std::size_t i) const noexcept { return events_[i]; }

    /// For producers. `clear` invalidates all views.
    void clear() noexcept;
    /// Copies `text` into the arena.
    std::string_view keep(std::string_view text);
    std::string_view keep(const std::string& text) { return keep(std::string_view(text)); }
    std::string_view keep(const char* text) { return keep(std::string_view(text)); }
    const json* keep(json value);
    event& push(event_kind kind);
    event& push(event_kind kind, std::string_view payload);
    /// Stamps every event with its round; a run does it for the events of its model calls.
    void set_round(std::uint32_t round) noexcept
    {
        for (event& e : events_) e.round = round;
    }
    /// The same with the time at which they were read.
    void stamp(std::uint32_t round, system_time at) noexcept
    {
        for (event& e : events_) {
            e.round = round;
            e.at = at;
        }
    }
    /// Bytes of payload kept, for back-pressure limits.
    std::size_t bytes() const noexcept { return bytes_; }

private:
    struct block;
    std::vector<event> events_;
    std::vector<block> blocks_;
    std::list<json> values_;  ///< stable addresses; empty it holds no memory
    std::size_t used_ = 0, current_ = 0, bytes_ = 0;
};

}  // namespace reagent::inline v0
