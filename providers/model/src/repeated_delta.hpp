#pragma once
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace reagent::inline v0::model_detail {

/// Recognises a chunk that repeats an earlier one in everything but its text and the members that mean nothing to us (`created`, `obfuscation`), as
/// servers send them by the hundred, and so spares parsing it. Exact: what stands between those places is compared byte by byte with a chunk that
/// was parsed, and a place is passed over only when it holds a value of the same kind that needs no unescaping. All else is for the parser.
class repeated_delta {
public:
    /// Longer chunks are not remembered: their text is what takes time.
    static constexpr std::size_t longest = 1024;
    /// A stream whose chunks differ elsewhere too is given up after so many samples that nothing repeated.
    static constexpr unsigned patience = 8;

    /// `chunk` was parsed, and its member of this quoted name, which is `delta`, is all that counts in it.
    void learn(std::string_view chunk, std::string_view delta, std::string_view name = "\"content\"");
    /// The text of a chunk that repeats the sample.
    std::optional<std::string_view> match(std::string_view chunk);

private:
    enum class kind : unsigned char { content, text, digits };
    /// A place that may differ: where in the sample, whose own value is left out.
    struct place {
        std::size_t at = 0;
        kind holds = kind::text;
    };
    /// False: the member stands there twice, and which one counts is not told here.
    bool leave_out(std::string_view chunk, std::string_view key, kind holds);

    std::string sample_;
    std::array<place, 3> places_;
    std::size_t count_ = 0;
    unsigned vain_ = 0;
};

}  // namespace reagent::inline v0::model_detail
