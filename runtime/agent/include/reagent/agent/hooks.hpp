#pragma once
#include <reagent/agent/tool.hpp>
#include <reagent/base/asio.hpp>
#include <reagent/base/json.hpp>
#include <reagent/base/usd.hpp>
#include <reagent/model/generate.hpp>
#include <reagent/model/message.hpp>

#include <chrono>
#include <concepts>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

namespace reagent::inline v0 {

/// A hook the run waits for. Takes a coroutine function or a plain one; its arguments live until it has ended, so either may take them by
/// `const&`. A hook that throws `halt_error` halts the run; anything else it throws is reported to `on_error` and never fails the run.
template <class R, class... Args>
class awaited_hook {
public:
    awaited_hook() = default;
    template <class F>
    requires(!std::same_as<std::remove_cvref_t<F>, awaited_hook> && std::invocable<F&, const Args&...>) awaited_hook(F f)
    {
        if constexpr (std::is_same_v<std::invoke_result_t<F&, const Args&...>, awaitable<R>>) call_ = std::move(f);
        else call_ = plain<F>(std::move(f));
    }
    explicit operator bool() const noexcept { return call_ != nullptr; }
    /// This frame owns the arguments while the hook runs. The hook must outlive the call.
    awaitable<R> operator()(Args... args) const
    {
        if constexpr (std::is_void_v<R>) {
            co_await call_(args...);
        } else {
            R answer = co_await call_(args...);
            co_return answer;
        }
    }

private:
    template <class F>
    class plain {
    public:
        explicit plain(F f) : f_(std::move(f)) {}
        awaitable<R> operator()(const Args&... args) { return run(&f_, &args...); }

    private:
        static awaitable<R> run(F* f, const Args*... args)
        {
            if constexpr (std::is_void_v<R>) {
                (*f)(*args...);
                co_return;
            } else {
                co_return (*f)(*args...);
            }
        }
        F f_;
    };
    mutable std::function<awaitable<R>(const Args&...)> call_;
};

/// Where an error reported to `on_error` came from (spec/loop-and-providers.md §13.1).
class error_report {
public:
    error_report() = default;
    std::string source;  ///< `provider`, `halt`, `denied`, `stuck`, `callback:onToolCall`, `onToolResult`, `assemble`, …
    std::string message;
    json extra = json::object();  ///< `round`, `rule`, `tool`, … by source
    std::exception_ptr cause;     ///< null when no exception stands behind it
    std::string run_id;
};

/// A round that completed, after pricing and before it is classified, so truncated and refused rounds are metered too.
class llm_report {
public:
    llm_report() = default;
    std::string run_id, model, provider;
    std::uint32_t round = 0;
    std::optional<reagent::usage> usage;
    std::optional<usd> cost;
    bool priced = false;
    std::string rate_source;  ///< `provider`, `caller`, `table`, `tier`, `default`, empty when unpriced
    std::string stop_reason;  ///< empty when null
    std::chrono::nanoseconds duration{0};
    std::string kind = "turn";
};

/// A tool call that ran to its end.
class tool_report {
public:
    tool_report() = default;
    std::string run_id;
    tool_call call;
    tool_result result;
};

/// What `policy` answers for a call.
class policy_verdict {
public:
    static policy_verdict allow() { return policy_verdict(true, {}); }
    /// An empty reason reads `[Loop] Tool "<name>" denied by policy`.
    static policy_verdict deny(std::string reason = {}) { return policy_verdict(false, std::move(reason)); }
    policy_verdict(bool allowed) : allowed_(allowed) {}
    policy_verdict() = default;
    bool allowed() const noexcept { return allowed_; }
    const std::string& reason() const noexcept { return reason_; }

private:
    policy_verdict(bool allowed, std::string reason) : allowed_(allowed), reason_(std::move(reason)) {}
    bool allowed_ = false;
    std::string reason_;
};

/// A point at which the transcript is whole: after each round and at the end. Sessions persist here.
class commit_point {
public:
    commit_point() = default;
    std::string run_id;
    std::uint32_t round = 0;
    transcript messages;
    bool last = false;        ///< the run ends with this commit
    std::string stop_reason;  ///< of the round, empty when null
};

/// What a host hooks into a run. All are optional. Synchronous ones must not block; awaited ones hold the run up.
class run_hooks {
public:
    std::function<void(const tool_call&)> on_tool_call;  ///< before each call that is not unknown
    std::function<void(const std::string&)> on_text;     ///< the final text
    std::function<void(const error_report&)> on_error;   ///< a throwing one is only logged
    awaited_hook<policy_verdict, tool_call> policy;      ///< asked before the gate; a plain exception counts as a denial
    awaited_hook<void, llm_report> on_llm_result;
    awaited_hook<void, tool_report> on_tool_result;
    awaited_hook<transcript, transcript> assemble;  ///< a view for one request only
    awaited_hook<transcript, transcript> trim;      ///< replaces the transcript when it answers another one
    awaited_hook<void, transcript> flush;           ///< of `trim`: at the final answer and at a stop
    awaited_hook<void, transcript> before_model;    ///< the messages about to be sent
    awaited_hook<void, tool_call> before_tool;      ///< journal: the call is about to run
    awaited_hook<void, tool_report> after_tool;     ///< journal: its result, before anything else sees it
    awaited_hook<void, commit_point> on_commit;
};

}  // namespace reagent::inline v0
