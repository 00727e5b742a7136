#include <reagent/base/error.hpp>
#include <reagent/base/spawn.hpp>
#include <reagent/base/task_scope.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>

#include <atomic>
#include <cassert>
#include <exception>
#include <list>
#include <vector>

namespace reagent::inline v0 {

struct task_scope::impl {
    struct child;
    struct join_place;
    using child_list = std::list<std::weak_ptr<child>>;

    impl(any_io_executor e, log_sink l) : ex(std::move(e)), log(std::move(l)) {}

    // From any thread. A slot is not safe to share, and Asio would post a pointer into it: the signals are given on the executor.
    static void cancel(const std::shared_ptr<impl>& self)
    {
        self->cancelled = true;
        if (self->alive == 0) return;  // the context may be gone
        asio::dispatch(self->ex, [self] { self->signal_all(); });
    }
    void signal_all()
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
    // The waiting joins, each with a timer that is cancelled whenever a child has ended. The timers live in the frames of the joins: a scope
    // may outlive its context, a timer may not.
    std::list<asio::steady_timer*> joins;
    child_list children;
    std::atomic<std::size_t> alive = 0;  // the size of `children`, for other threads
    std::atomic<bool> cancelled = false;
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
        --scope->alive;
    }
    void on_end(const std::exception_ptr& failure)
    {
        leave();
        for (asio::steady_timer* ended_cv : scope->joins) ended_cv->cancel();
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
    impl_->signal_all();
    impl_->log(log_level::error, "a task scope died with " + std::to_string(impl_->children.size()) + " running tasks: join it first");
    assert(false && "task_scope destroyed before join");
}

void task_scope::spawn(std::string name, awaitable<void> work)
{
    if (impl_->cancelled) return;
    const auto c = std::make_shared<impl::child>(impl_, std::move(name));
    c->place = impl_->children.insert(impl_->children.end(), c);
    ++impl_->alive;
    asio::co_spawn(impl_->ex, std::move(work), asio::bind_cancellation_slot(c->signal.slot(), [c](const std::exception_ptr& failure) { c->on_end(failure); }));
}

void task_scope::cancel()
{
    impl::cancel(impl_);
}

std::size_t task_scope::size() const noexcept
{
    return impl_->alive;
}

// One waiting join in the list of its scope.
struct task_scope::impl::join_place {
    explicit join_place(std::shared_ptr<impl> s) : ended_cv(s->ex, std::chrono::steady_clock::time_point::max()), scope(std::move(s))
    {
        place = scope->joins.insert(scope->joins.end(), &ended_cv);
    }
    join_place(const join_place&) = delete;
    join_place& operator=(const join_place&) = delete;
    ~join_place() { scope->joins.erase(place); }

    asio::steady_timer ended_cv;
    std::shared_ptr<impl> scope;
    std::list<asio::steady_timer*>::iterator place;
};

// Under its own cancellation state: a cancelled join cancels the children and goes on waiting.
awaitable<void> task_scope::join_body(std::shared_ptr<impl> self)
{
    co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
    co_await asio::this_coro::throw_if_cancelled(false);
    impl::join_place here(self);
    bool cancelled = false;
    while (!self->children.empty()) {
        error_code ignored;
        co_await here.ended_cv.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
        const asio::cancellation_state state = co_await asio::this_coro::cancellation_state;
        if (cancelled || state.cancelled() == asio::cancellation_type::none) continue;
        cancelled = true;
        self->signal_all();
    }
    if (cancelled) throw boost::system::system_error(asio::error::operation_aborted);
}

awaitable<void> task_scope::join()
{
    return isolated(join_body(impl_));
}

}  // namespace reagent::inline v0
