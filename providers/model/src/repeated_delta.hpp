#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace reagent::inline v0::model_detail {

/// What differs from one text chunk of a wire to the next. The names are of static storage and in quotes, as they stand in a chunk; an empty one is none.
class delta_shape {
public:
    std::string_view text = "\"content\"";                          ///< the delta
    std::array<std::string_view, 4> digits = {"\"created\""};       ///< whole numbers, which `number` tells by their place here
    std::array<std::string_view, 2> strings = {"\"obfuscation\""};  ///< text that means nothing to us
};

/// Recognises a chunk that repeats an earlier one in everything but its text and a few other members (`created`, `obfuscation`), as servers send them by the hundred, and so spares parsing it. Exact: what stands between those places is compared byte by byte with a chunk that
/// was parsed, and a place is passed over only when it holds a value of the same kind that needs no unescaping. All else is for the parser.
class repeated_delta {
public:
    /// Longer chunks are not remembered: their text is what takes time.
    static constexpr std::size_t longest = 1024;
    /// A stream whose chunks differ elsewhere too is given up after so many samples that nothing repeated.
    static constexpr unsigned patience = 8;

    explicit repeated_delta(const delta_shape& shape = delta_shape()) noexcept : shape_(shape) {}

    /// `chunk` was parsed, and its text, which is `delta`, and its digits are all that counts in it.
    void learn(std::string_view chunk, std::string_view delta);
    /// The text of a chunk that repeats the sample.
    std::optional<std::string_view> match(std::string_view chunk);
    /// The number that the chunk of the last match has for `shape.digits[i]`; nothing when the sample has none there.
    std::optional<std::uint64_t> number(std::size_t i) const noexcept { return numbers_[i]; }

private:
    enum class kind : unsigned char { content, text, digits };
    /// A place that may differ: where in the sample, whose own value is left out.
    struct place {
        std::size_t at = 0;
        kind holds = kind::text;
        std::size_t number = 0;  ///< of digits: the place of the name in the shape
    };
    /// False: the member stands there twice, and which one counts is not told here.
    bool leave_out(std::string_view chunk, std::string_view key, kind holds, std::size_t number = 0);

    delta_shape shape_;
    std::string sample_;
    std::array<place, 7> places_;
    std::array<std::optional<std::uint64_t>, 4> numbers_;
    std::size_t count_ = 0;
    unsigned vain_ = 0;
};

}  // namespace reagent::inline v0::model_detail
