/// The native blocks of an Anthropic answer, and the order in which they stood among text and calls.
#pragma once
#include <reagent/base/json.hpp>
#include <reagent/model/generate.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace reagent::inline v0::model_detail {

/// A block that is neither text nor a call, put together from its start and its deltas: as it would have come in one piece.
class native_block {
public:
    explicit native_block(json start) : value_(std::move(start)) {}
    void add_text(std::string_view t) { text_ += t; }
    void add_thinking(std::string_view t) { thinking_ += t; }
    void add_signature(std::string_view t) { signature_ += t; }
    /// A piece of the JSON text of `input`.
    void add_input(std::string_view t) { input_ += t; }
    void add_citation(json c) { citations_.push_back(std::move(c)); }
    /// A delta of a type that we do not know, kept in `deltas`.
    void add_delta(json d) { deltas_.push_back(std::move(d)); }
    json take();

private:
    void extend(const char* key, const std::string& with);
    void extend(const char* key, json& with);

    json value_, citations_, deltas_;
    std::string text_, thinking_, signature_, input_;
};

/// What stood where in an answer. Kept beside its native blocks when they did not simply stand in front (spec/loop-and-providers.md §7.5):
/// `{"text":<digest>,"order":[{"text":<bytes>},{"block":<index>},{"call":<id>}]}`. Of the text only lengths and a digest, so that what is cut from a transcript
/// does not live on here.
class block_order {
public:
    enum class kind : unsigned char { block, text, call };
    struct item {
        kind what = kind::text;
        std::size_t n = 0;  ///< index of the block or call, bytes of the text
    };
    void add_text(std::size_t bytes);
    void add_block() { items_.push_back({kind::block, blocks_++}); }
    void add_call() { items_.push_back({kind::call, calls_++}); }
    /// Null when blocks, text and calls stood in this order, which needs no words.
    json to_json(std::string_view text, const generate_result& result) const;
    /// What `layout` says, when it is about exactly this text, these calls and so many blocks; else nothing.
    static std::vector<item> read(const json& layout, std::string_view text, const std::vector<const tool_call*>& calls, std::size_t blocks);

private:
    std::vector<item> items_;
    std::size_t blocks_ = 0, calls_ = 0;
};

}  // namespace reagent::inline v0::model_detail
