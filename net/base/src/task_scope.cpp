#include <reagent/base/error.hpp>
#include <reagent/base/spawn.hpp>
#include <reagent/base/task_scope.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>

#include <cassert>
#include <exception>
#include <list>
#include <vector>

namespace reagent::inline v0 {

struct task_scope::impl {
    struct child;
    using child_list = std::list<std::weak_ptr<child>>;

    impl(any_io_executor e, log_sink l) : ex(e), log(std::move(l)), ended_cv(std::move(e), std::chrono::steady_clock::time_point::max()) {}

    void cancel()
    {
        cancelled = true;
        // A child may end inside the signal and leave the list.
        std::vector<std::shared_ptr<child>> signalled;
        signalled.reserve(children.size());
        for (const std::weak_ptr<child>& c : children) signalled.push_back(c.lock());
        for (const std::shared_ptr<child>& c : signalled) emit(c.get());
    }
    static void emit(child* c);

    any_io_executor ex;
    log_sink log;
    asio::steady_timer ended_cv;  // cancelled whenever a child has ended
    child_list children;
    bool cancelled = false;
};

// Owned by the completion handler of its coroutine, so a child whose context is destroyed leaves the list too.
struct task_scope::impl::child {
    child(std::shared_ptr<impl> s, std::string n) : scope(std::move(s)), name(std::move(n)), place(scope->children.end()) {}
    ~child() { leave(); }
    void leave() noexcept
    {
        if (place == scope->children.end()) return;
        scope->children.erase(place);
        place = scope->children.end();
    }
    void on_end(const std::exception_ptr& failure)
    {
        leave();
        scope->ended_cv.cancel();
        if (!failure || (scope->cancelled && is_cancellation(failure))) return;
        scope->log(log_level::error, "task " + name + " failed: " + message_of(failure));
    }

    std::shared_ptr<impl> scope;
    std::string name;
    child_list::iterator place;
    asio::cancellation_signal signal;
};

void task_scope::impl::emit(child* c)
{
    if (c) c->signal.emit(asio::cancellation_type::terminal);
}

task_scope::task_scope(any_io_executor ex, log_sink log) : impl_(std::make_shared<impl>(std::move(ex), std::move(log))) {}

task_scope::~task_scope()
{
    if (impl_->children.empty()) return;
    impl_->cancel();
    impl_->log(log_level::error, "a task scope died with " + std::to_string(impl_->children.size()) + " running tasks: join it first");
    assert(!"task_scope destroyed before join");
}

void task_scope::spawn(std::string name, awaitable<void> work)
{
    if (impl_->cancelled) return;
    const auto c = std::make_shared<impl::child>(impl_, std::move(name));
    c->place = impl_->children.insert(impl_->children.end(), c);
    asio::co_spawn(impl_->ex, std::move(work),
        asio::bind_cancellation_slot(c->signal.slot(), [c](const std::exception_ptr& failure) { c->on_end(failure); }));
}

void task_scope::cancel() { impl_->cancel(); }

std::size_t task_scope::size() const noexcept { return impl_->children.size(); }

// Under its own cancellation state: a cancelled join cancels the children and goes on waiting.
awaitable<void> task_scope::join_body(std::shared_ptr<impl> self)
{
    co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
    co_await asio::this_coro::throw_if_cancelled(false);
    bool cancelled = false;
    while (!self->children.empty()) {
        error_code ignored;
        co_await self->ended_cv.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
        const asio::cancellation_state state = co_await asio::this_coro::cancellation_state;
        if (cancelled || state.cancelled() == asio::cancellation_type::none) continue;
        cancelled = true;
        self->cancel();
    }
    if (cancelled) throw boost::system::system_error(asio::error::operation_aborted);
}

awaitable<void> task_scope::join() { return isolated(join_body(impl_)); }

}  // namespace reagent::inline v0
