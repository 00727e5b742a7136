#include <reagent/base/context_watcher.hpp>

#include <boost/asio/execution/context.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/query.hpp>

#include <mutex>

namespace reagent::inline v0 {
namespace base_detail {

/// The watchers of one context. Services are shut down newest first, and those of Asio's own objects are older than what waits for them.
class watcher_list final : public asio::execution_context::service {
public:
    using key_type = watcher_list;
    static asio::execution_context::id id;

    explicit watcher_list(asio::execution_context& context) : asio::execution_context::service(context) {}

    void add(context_watcher& w) noexcept
    {
        const std::lock_guard lock(mutex_);
        w.list_ = this;
        w.behind_ = first_;
        if (first_) first_->before_ = &w;
        first_ = &w;
    }
    void remove(context_watcher& w) noexcept
    {
        const std::lock_guard lock(mutex_);
        unlink(w);
    }

private:
    void shutdown() override
    {
        while (context_watcher* w = pop()) w->context_ends();
    }
    context_watcher* pop() noexcept
    {
        const std::lock_guard lock(mutex_);
        context_watcher* w = first_;
        if (w) unlink(*w);
        return w;
    }
    void unlink(context_watcher& w) noexcept
    {
        if (!w.list_) return;
        (w.before_ ? w.before_->behind_ : first_) = w.behind_;
        if (w.behind_) w.behind_->before_ = w.before_;
        w.before_ = w.behind_ = nullptr;
        w.list_ = nullptr;
    }
    std::mutex mutex_;
    context_watcher* first_ = nullptr;
};

asio::execution_context::id watcher_list::id;

}  // namespace base_detail

context_watcher::context_watcher(const any_io_executor& ex)
{
    if (!ex) return;
    asio::execution_context& context = asio::query(ex, asio::execution::context);
    asio::use_service<base_detail::watcher_list>(context).add(*this);
}

void context_watcher::stop_watching() noexcept
{
    if (list_) list_->remove(*this);
}

}  // namespace reagent::inline v0
