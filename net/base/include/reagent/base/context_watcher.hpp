#pragma once
#include <reagent/base/asio.hpp>

namespace reagent::inline v0 {

namespace base_detail {
class watcher_list;
}

/// Told when the context of an executor goes down, before what lives in it is destroyed. A context destroys the suspended handlers it knows; one that
/// rests in an object of ours would stay for ever, and whoever woke it later would find the context gone. So such an object is a watcher and lets its
/// handler go in `context_ends`. May outlive its context. Construction and destruction are safe from any thread while the context lives; an empty
/// executor is watched by nobody.
class context_watcher {
public:
    explicit context_watcher(const any_io_executor& ex);
    context_watcher(const context_watcher&) = delete;
    context_watcher& operator=(const context_watcher&) = delete;

protected:
    ~context_watcher() { stop_watching(); }
    /// At most once, from the destructor of the context; may destroy this object.
    virtual void context_ends() noexcept = 0;
    /// Idempotent.
    void stop_watching() noexcept;

private:
    friend class base_detail::watcher_list;
    base_detail::watcher_list* list_ = nullptr;  // null after the end
    context_watcher* before_ = nullptr;
    context_watcher* behind_ = nullptr;
};

}  // namespace reagent::inline v0
