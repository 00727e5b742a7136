#include <simdjson.h>

#include "wire_json.hpp"

#include "wire_scratch.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace reagent::inline v0::model_detail {

std::shared_ptr<wire_scratch> make_wire_scratch()
{
    return std::make_shared<wire_scratch>();
}

std::optional<simdjson::dom::element> wire_scratch::parse(std::string_view text)
{
    shrink();
    const std::size_t wanted = text.size() + simdjson::SIMDJSON_PADDING;
    if (wanted > size_) {
        size_ = std::bit_ceil(std::max(wanted, smallest));
        buffer_ = std::make_unique_for_overwrite<char[]>(size_);
    }
    std::memcpy(buffer_.get(), text.data(), text.size());
    std::memset(buffer_.get() + text.size(), ' ', simdjson::SIMDJSON_PADDING);
    if (!parser_) parser_.emplace();
    if (text.size() > parser_->capacity() && parser_->allocate(std::bit_ceil(std::max(text.size(), smallest)), max_depth) != simdjson::SUCCESS)
        return std::nullopt;
    simdjson::dom::element root;
    if (parser_->parse(buffer_.get(), text.size(), false).get(root) != simdjson::SUCCESS) return std::nullopt;
    return root;
}

/// One huge event must not keep its memory for good.
void wire_scratch::shrink()
{
    if (parser_ && parser_->capacity() > largest_kept) parser_.reset();
    if (size_ > largest_kept) {
        buffer_.reset();
        size_ = 0;
    }
}

}  // namespace reagent::inline v0::model_detail
