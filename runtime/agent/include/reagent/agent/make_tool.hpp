#pragma once
#include <reagent/agent/described.hpp>
#include <reagent/agent/tool.hpp>
#include <reagent/base/asio.hpp>

#include <functional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace reagent::inline v0 {
namespace agent_detail {

template <class T>
struct awaited {
    static constexpr bool value = false;
    using type = T;
};
template <class T>
struct awaited<awaitable<T>> {
    static constexpr bool value = true;
    using type = T;
};

/// The arguments of a function that takes none.
struct no_args {};
BOOST_DESCRIBE_STRUCT(no_args, (), ())

template <class Signature>
struct tool_signature;
template <class R, class A>
struct tool_signature<R(A)> {
    using args = std::remove_cvref_t<A>;
    static constexpr bool takes_args = true, takes_context = false;
};
template <class R, class A>
struct tool_signature<R(A, tool_context&)> {
    using args = std::remove_cvref_t<A>;
    static constexpr bool takes_args = true, takes_context = true;
};
template <class R>
struct tool_signature<R()> {
    using args = no_args;
    static constexpr bool takes_args = false, takes_context = false;
};
template <class R>
struct tool_signature<R(tool_context&)> {
    using args = no_args;
    static constexpr bool takes_args = false, takes_context = true;
};
template <class F>
struct callable_signature;
template <class Signature>
struct callable_signature<std::function<Signature>> : tool_signature<Signature> {};

/// Calls `f` with what its signature takes. `args` stays with the caller, whose frame outlives what an awaitable answer refers to.
template <class Signature, class F, class Args>
decltype(auto) apply_described(F& f, Args& args, tool_context& context)
{
    if constexpr (Signature::takes_args && Signature::takes_context) return f(std::move(args), context);
    else if constexpr (Signature::takes_args) return f(std::move(args));
    else if constexpr (Signature::takes_context) return f(context);
    else return f();
}

/// Calls `f` with arguments already checked. Never a lambda: the frame keeps what it needs by value.
template <class Signature, class F>
awaitable<json> call_described(std::shared_ptr<F> f, const json* raw, tool_context* context)
{
    using args_type = typename Signature::args;
    args_type args{};
    std::vector<std::string> problems;
    read_described(*raw, args, "", problems);
    using answer = decltype(apply_described<Signature>(*f, args, *context));
    using value_type = typename awaited<answer>::type;
    if constexpr (awaited<answer>::value) {
        if constexpr (std::is_void_v<value_type>) {
            co_await apply_described<Signature>(*f, args, *context);
            co_return json();
        } else {
            value_type value = co_await apply_described<Signature>(*f, args, *context);
            co_return described_to_json(value);
        }
    } else if constexpr (std::is_void_v<value_type>) {
        apply_described<Signature>(*f, args, *context);
        co_return json();
    } else {
        co_return described_to_json(apply_described<Signature>(*f, args, *context));
    }
}

template <class Args>
std::vector<std::string> check_described(const json& raw)
{
    Args args{};
    std::vector<std::string> problems;
    read_described(raw, args, "", problems);
    return problems;
}

}  // namespace agent_detail

/// A tool from a function `R f(Args)`, `R f(Args, tool_context&)`, `R f()` or `R f(tool_context&)`. `Args` is a struct described with BOOST_DESCRIBE_STRUCT whose fields are
/// strings, booleans, integers, doubles, described enums and structs, `std::optional`, `std::vector` or `json`; the schema the model sees and the
/// check of what it sends both come from it, a bad call is answered with every bad field named. `R` is an `awaitable` of (or plainly) `json`, a
/// string, a number, a described struct, or void. The function must outlive no run: a copy is kept. Docs of fields: `tool::doc`.
template <class F>
tool make_tool(std::string name, std::string description, F f)
{
    using signature = agent_detail::callable_signature<decltype(std::function(f))>;
    using args = typename signature::args;
    using callable = std::decay_t<F>;
    auto shared = std::make_shared<callable>(std::move(f));
    tool_function run = [shared](const json& raw, tool_context& context) { return agent_detail::call_described<signature, callable>(shared, &raw, &context); };
    return tool::from_check(std::move(name), std::move(description), described_schema<args>(), &agent_detail::check_described<args>, std::move(run));
}

}  // namespace reagent::inline v0
