#pragma once
#include "parking.hpp"

#include <list>
#include <utility>

namespace reagent::inline v0::net_detail {

/// One of several who wait for the same thing, listed while it waits. The list must outlive it.
class waiting_place {
public:
    waiting_place(any_io_executor ex, std::list<parking*>& list) : place(std::move(ex)), list_(list), at_(list.insert(list.end(), &place)) {}
    waiting_place(const waiting_place&) = delete;
    waiting_place& operator=(const waiting_place&) = delete;
    ~waiting_place() { list_.erase(at_); }
    parking place;

private:
    std::list<parking*>& list_;
    std::list<parking*>::iterator at_;
};

}  // namespace reagent::inline v0::net_detail
