#include "process_leftovers.hpp"

#include <boost/asio/execution/context.hpp>
#include <boost/asio/query.hpp>

namespace reagent::inline v0::net_detail {

asio::execution_context::id process_leftovers::id;

process_leftovers& process_leftovers::of(const any_io_executor& ex)
{
    asio::execution_context& context = asio::query(ex, asio::execution::context);
    return asio::use_service<process_leftovers>(context);
}

void process_leftovers::keep(spawned_process p)
{
    sweep();
    kept_.push_back(std::move(p));
}

void process_leftovers::sweep() noexcept
{
    kept_.remove_if([](spawned_process& p) {
        const bool child = reap_child(p), guard = reap_guard(p);
        return child && guard;
    });
}

}  // namespace reagent::inline v0::net_detail
