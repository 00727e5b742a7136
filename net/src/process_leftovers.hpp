#pragma once
#include "process_spawn.hpp"

#include <boost/asio/execution_context.hpp>

#include <list>

namespace reagent::inline v0::net_detail {

/// The processes of one context that did not die of SIGKILL at once, as those in an uninterruptible wait do not: reaped when the next one is started or
/// left, and when the context ends.
class process_leftovers final : public asio::execution_context::service {
public:
    using key_type = process_leftovers;
    static asio::execution_context::id id;

    explicit process_leftovers(asio::execution_context& context) : asio::execution_context::service(context) {}
    static process_leftovers& of(const any_io_executor& ex);
    void keep(spawned_process p);
    void sweep() noexcept;
    std::size_t size() const noexcept { return kept_.size(); }

private:
    void shutdown() override { sweep(); }
    std::list<spawned_process> kept_;
};

}  // namespace reagent::inline v0::net_detail
