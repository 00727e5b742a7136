#pragma once
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace reagent_app {

/// This program again, beside us: its own process group, no descriptor but the standard ones, standard output read through a pipe, standard error
/// ours. Its group is killed and reaped at destruction; ends by itself when we die. Its calls block: for start-up only.
class child_process {
public:
    /// Starts this executable with these arguments. Throws `reagent::error` when it cannot be started.
    explicit child_process(const std::vector<std::string>& arguments);
    ~child_process();
    child_process(const child_process&) = delete;
    child_process& operator=(const child_process&) = delete;

    /// The next line of its standard output, without the line end. Throws `reagent::error` when none comes in time or the child has ended.
    std::string read_line(int timeout_ms);
    pid_t id() const noexcept { return pid_; }

private:
    void stop() noexcept;
    pid_t pid_ = -1;
    int output_ = -1;
    std::string pending_;
};

/// The option that `child_process` puts first on the command line, and what the child does with its value, the id of the process it belongs to:
/// it asks the kernel to be killed with its parent, and ends at once when the parent is gone already.
inline constexpr std::string_view die_with_parent_option = "--die-with-parent";
void die_with_parent(long parent);

}  // namespace reagent_app
