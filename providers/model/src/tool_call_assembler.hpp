#pragma once
#include <reagent/base/random.hpp>
#include <reagent/model/event.hpp>
#include <reagent/model/generate.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace reagent::inline v0::model_detail {

inline constexpr std::size_t default_max_arguments = 8 * 1024 * 1024;  ///< bytes of arguments of one call
inline constexpr std::size_t max_calls_of_round = 4096;                ///< calls one answer may open

/// One element of a streamed `tool_calls` list.
class tool_fragment {
public:
    std::optional<std::int64_t> index;
    std::string_view id, name, arguments;
    bool text = true;    ///< `arguments` came as a string, be it an empty one; false: as a value, or not at all
    bool whole = false;  ///< `arguments` is complete JSON (it came as an object)
};

/// Finds out where JSON text that arrives in pieces closes its first container. Bytes are touched once.
class json_end_finder {
public:
    void feed(std::string_view bytes) noexcept;
    bool complete() const noexcept { return complete_; }
    void set_complete() noexcept { complete_ = true; }

private:
    std::uint32_t depth_ = 0;
    bool string_ = false, escape_ = false, complete_ = false;
};

/// Puts tool calls together from fragments (spec/loop-and-providers.md §5 and §4.2): slots by index, new slots by a new id or name, fragments that
/// belong nowhere go to the open call. Never throws but for memory; bytes are touched once, a fragment looks at each open slot at most.
class tool_call_assembler {
public:
    tool_call_assembler() = default;
    tool_call_assembler(std::size_t max_arguments, random_source random) : max_arguments_(max_arguments), random_(std::move(random)) {}

    /// One streamed fragment. False: a limit is passed. `out` may be null.
    bool add(const tool_fragment& f, event_batch* out);
    /// One call of a one-shot answer: always a slot of its own.
    bool add_whole(const tool_fragment& f, event_batch* out);
    /// An element that is no object: a call we cannot read.
    bool add_unreadable();
    /// The open call of this index will get no end of its own: it is malformed, whatever its arguments look like.
    void cut(std::int64_t index);
    /// At the logical end: reads the arguments and fills `tool_calls`, or `malformed` and `attempted`.
    void finish(const tool_list& tools, bool expose_arguments, generate_result& result, event_batch* out);

    /// Whether the call at `position` has the id, name and arguments of `f`.
    bool holds(std::size_t position, const tool_fragment& f) const noexcept;
    /// What `add` refused, in words.
    std::string limit_text() const;
    unsigned started() const noexcept { return static_cast<unsigned>(slots_.size()); }
    std::uint64_t argument_bytes() const noexcept { return bytes_; }
    /// Bytes kept in all: arguments, names and ids.
    std::uint64_t held_bytes() const noexcept { return bytes_ + label_bytes_; }
    /// Ids tried so far until each was unique, for tests of the work done.
    std::uint64_t ids_tried() const noexcept { return ids_tried_; }

private:
    class slot {
    public:
        std::optional<std::int64_t> index;
        std::string wire_id, id, name, arguments;
        json_end_finder end;
        std::size_t emitted = 0;                   ///< bytes of `arguments` already sent as events
        bool open_event = false;                   ///< tool_start is out
        bool has_text = false, has_value = false;  ///< how the arguments came
        bool cut = false;                          ///< it was not closed
    };
    slot* find(const tool_fragment& f);
    bool continues(const slot& s, const tool_fragment& f) const noexcept;
    slot* open(const tool_fragment& f);
    bool extend(slot& s, const tool_fragment& f, event_batch* out);
    void give_id(slot& s, std::string_view wanted);
    void emit(slot& s, event_batch* out);
    std::uint32_t position(const slot& s) const noexcept { return static_cast<std::uint32_t>(&s - slots_.data()); }

    std::vector<slot> slots_;
    std::size_t max_arguments_ = default_max_arguments;
    random_source random_;
    std::unordered_map<std::string, unsigned> taken_;  ///< ids of the round, each with the next suffix for those that want it too
    std::uint64_t bytes_ = 0, label_bytes_ = 0, ids_tried_ = 0;
};

/// Arguments of one call as text to a value; the fault's sentence and byte when they cannot be used.
class read_arguments {
public:
    read_arguments(std::string_view text, std::string_view name, const tool_list& tools);
    json value = json::object();
    std::string fault;  ///< empty when `value` holds
    std::size_t offset = 0;
};

}  // namespace reagent::inline v0::model_detail
