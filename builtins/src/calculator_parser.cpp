#include "calculator.hpp"

#include <array>
#include <optional>
#include <string>
#include <utility>

namespace reagent::inline v0::builtins_detail {
namespace {

bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}
bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}
bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_continuation(char c)
{
    return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U;
}

std::size_t characters(std::string_view text)
{
    std::size_t n = 0;
    for (const char c : text) n += is_continuation(c) ? 0U : 1U;
    return n;
}

constexpr std::array<std::pair<std::string_view, calculator_op>, 7> functions{{{"sqrt", calculator_op::sqrt},
                                                                               {"abs", calculator_op::abs},
                                                                               {"round", calculator_op::round},
                                                                               {"floor", calculator_op::floor},
                                                                               {"ceil", calculator_op::ceil},
                                                                               {"ln", calculator_op::ln},
                                                                               {"log", calculator_op::log}}};

/// Recursive descent. Only brackets, calls and right sides of `^` recurse, and those are counted.
class parser {
public:
    explicit parser(std::string_view text) : text_(text) {}

    std::vector<calculator_step> parse()
    {
        expression();
        if (at_ < text_.size()) unexpected();
        return std::move(steps_);
    }

private:
    void skip()
    {
        while (at_ < text_.size() && is_space(text_[at_])) ++at_;
    }
    char peek()
    {
        skip();
        return at_ < text_.size() ? text_[at_] : '\0';
    }
    bool take(char c)
    {
        if (peek() != c || at_ >= text_.size()) return false;
        ++at_;
        return true;
    }
    void emit(calculator_op op, std::string_view digits = {})
    {
        calculator_step step;
        step.op = op;
        step.digits = digits;
        steps_.push_back(step);
    }

    [[noreturn]] void unexpected(std::string_view hint = {})
    {
        skip();
        const std::size_t position = characters(text_.substr(0, at_));
        std::string message;
        if (at_ >= text_.size()) {
            message = "the expression ends at position " + std::to_string(position) + " where a value or ) is missing";
        } else {
            std::size_t end = at_ + 1;
            while (end < text_.size() && is_continuation(text_[end])) ++end;
            message = "unexpected " + std::string(text_.substr(at_, end - at_)) + " at position " + std::to_string(position);
        }
        if (!hint.empty()) message.append(": ").append(hint);
        throw calculator_error("syntax", std::move(message));
    }

    void enter()
    {
        if (++depth_ > max_expression_levels)
            throw calculator_error("too_deep",
                                   "more than " + std::to_string(max_expression_levels) + " levels are open at position " +
                                       std::to_string(characters(text_.substr(0, at_))));
    }
    void leave() { --depth_; }

    void expression()
    {
        term();
        for (;;) {
            if (take('+')) {
                term();
                emit(calculator_op::add);
            } else if (take('-')) {
                term();
                emit(calculator_op::subtract);
            } else {
                return;
            }
        }
    }
    void term()
    {
        unary();
        for (;;) {
            if (take('*')) {
                unary();
                emit(calculator_op::multiply);
            } else if (take('/')) {
                unary();
                emit(calculator_op::divide);
            } else if (take('%')) {
                unary();
                emit(calculator_op::remainder);
            } else {
                return;
            }
        }
    }
    void unary()
    {
        bool negative = false;
        for (;;) {
            if (take('-')) negative = !negative;
            else if (!take('+')) break;
        }
        power();
        if (negative) emit(calculator_op::negate);
    }
    void power()
    {
        primary();
        if (!take('^')) return;
        enter();
        unary();
        leave();
        emit(calculator_op::power);
    }
    void primary()
    {
        const char c = peek();
        if (take('(')) {
            bracket();
        } else if (is_digit(c) || c == '.') {
            number();
        } else if (is_letter(c)) {
            call();
        } else {
            unexpected();
        }
    }
    void bracket()
    {
        enter();
        expression();
        if (!take(')')) unexpected();
        leave();
    }
    void call()
    {
        std::size_t end = at_;
        while (end < text_.size() && (is_letter(text_[end]) || is_digit(text_[end]) || text_[end] == '_')) ++end;
        const std::string_view name = text_.substr(at_, end - at_);
        for (const auto& [known, op] : functions) {
            if (name != known) continue;
            at_ = end;
            if (!take('(')) unexpected("a function needs its argument in brackets");
            bracket();
            emit(op);
            return;
        }
        unexpected("the only names are sqrt, abs, round, floor, ceil, ln and log");
    }
    void number()
    {
        const std::size_t start = at_;
        std::size_t count = 0;
        const auto digits = [&] {
            while (at_ < text_.size() && is_digit(text_[at_])) ++at_, ++count;
        };
        digits();
        if (at_ < text_.size() && text_[at_] == '.') {
            ++at_;
            digits();
        }
        if (count == 0) {
            at_ = start;
            unexpected("a dot needs digits");
        }
        if (at_ < text_.size() && (text_[at_] == 'e' || text_[at_] == 'E')) {
            const std::size_t e = at_++;
            if (at_ < text_.size() && (text_[at_] == '+' || text_[at_] == '-')) ++at_;
            const std::size_t before = at_;
            digits();
            if (at_ == before) {
                at_ = e;
                unexpected("an exponent needs digits");
            }
        }
        if (at_ < text_.size() && (is_letter(text_[at_]) || text_[at_] == '.' || text_[at_] == '_')) unexpected("it is glued to a number");
        emit(calculator_op::literal, text_.substr(start, at_ - start));
    }

    std::string_view text_;
    std::size_t at_ = 0;
    std::size_t depth_ = 0;
    std::vector<calculator_step> steps_;
};

}  // namespace

std::vector<calculator_step> parse_expression(std::string_view expression)
{
    const std::size_t length = characters(expression);
    if (length > max_expression_characters)
        throw calculator_error(
            "too_long", "the expression has " + std::to_string(length) + " characters, at most " + std::to_string(max_expression_characters) + " are allowed");
    bool blank = true;
    for (const char c : expression) blank = blank && is_space(c);
    if (blank) throw calculator_error("empty", "the expression is empty");
    return parser(expression).parse();
}

}  // namespace reagent::inline v0::builtins_detail
