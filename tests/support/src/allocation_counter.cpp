#include <reagent/testing/allocation_counter.hpp>

#include <cstdlib>
#include <new>

namespace {

struct totals {
    std::uint64_t allocations = 0, frees = 0, bytes = 0;
};
constinit thread_local totals mine;

void* counted(std::size_t size) noexcept
{
    ++mine.allocations;
    mine.bytes += size;
    return std::malloc(size == 0 ? 1 : size);
}

void* counted(std::size_t size, std::align_val_t align) noexcept
{
    ++mine.allocations;
    mine.bytes += size;
    const std::size_t a = static_cast<std::size_t>(align);
    return std::aligned_alloc(a, (size + a - 1) / a * a);
}

void* or_throw(void* p)
{
    if (p == nullptr) throw std::bad_alloc();
    return p;
}

void release(void* p) noexcept
{
    if (p != nullptr) ++mine.frees;
    std::free(p);
}

}  // namespace

void* operator new(std::size_t size)
{
    return or_throw(counted(size));
}
void* operator new[](std::size_t size)
{
    return or_throw(counted(size));
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept
{
    return counted(size);
}
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept
{
    return counted(size);
}
void* operator new(std::size_t size, std::align_val_t align)
{
    return or_throw(counted(size, align));
}
void* operator new[](std::size_t size, std::align_val_t align)
{
    return or_throw(counted(size, align));
}
void operator delete(void* p) noexcept
{
    release(p);
}
void operator delete[](void* p) noexcept
{
    release(p);
}
void operator delete(void* p, std::size_t) noexcept
{
    release(p);
}
void operator delete[](void* p, std::size_t) noexcept
{
    release(p);
}
void operator delete(void* p, const std::nothrow_t&) noexcept
{
    release(p);
}
void operator delete[](void* p, const std::nothrow_t&) noexcept
{
    release(p);
}
void operator delete(void* p, std::align_val_t) noexcept
{
    release(p);
}
void operator delete[](void* p, std::align_val_t) noexcept
{
    release(p);
}
void operator delete(void* p, std::size_t, std::align_val_t) noexcept
{
    release(p);
}
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept
{
    release(p);
}

namespace reagent::inline v0::testing {

allocation_counter::allocation_counter() noexcept
{
    reset();
}
std::uint64_t allocation_counter::allocations() const noexcept
{
    return mine.allocations - allocations_;
}
std::uint64_t allocation_counter::frees() const noexcept
{
    return mine.frees - frees_;
}
std::uint64_t allocation_counter::bytes() const noexcept
{
    return mine.bytes - bytes_;
}

void allocation_counter::reset() noexcept
{
    allocations_ = mine.allocations;
    frees_ = mine.frees;
    bytes_ = mine.bytes;
}

}  // namespace reagent::inline v0::testing
