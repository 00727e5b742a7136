#include "audit_file.hpp"
#include "audit_line.hpp"

#include <reagent/base/error.hpp>
#include <reagent/base/time_text.hpp>
#include <reagent/governance/audit_log.hpp>

#include <fstream>
#include <iterator>
#include <mutex>
#include <optional>

namespace reagent::inline v0 {

namespace gd = governance_detail;

struct audit_log::impl {
    explicit impl(clock_ptr c) : clock(c ? std::move(c) : clock::system()) {}
    const clock_ptr clock;
    std::string path;
    std::mutex mutex;
    std::optional<gd::audit_file> file;  // under the mutex, like memory
    std::vector<json> memory;
};

audit_log audit_log::in_memory(clock_ptr clock)
{
    return audit_log(std::make_shared<impl>(std::move(clock)));
}

audit_log audit_log::file(std::string path, clock_ptr clock)
{
    auto made = std::make_shared<impl>(std::move(clock));
    if (path.empty()) throw config_error("audit.path: must not be empty");
    bool torn = false;
    const int fd = gd::audit_file::open(path, torn);
    made->path = path;
    made->file.emplace(fd, std::move(path), torn);
    return audit_log(std::move(made));
}

void audit_log::write(std::vector<json> lines) const
{
    if (!impl_ || lines.empty()) return;
    std::string bytes;
    for (json& line : lines) {
        gd::redact_line(line);
        if (line.is_object() && line["ts"].is_null()) {
            if (json* ts = line.find("ts")) *ts = format_iso8601(impl_->clock->wall());
            else line.as_object().insert(line.as_object().begin(), json::member("ts", format_iso8601(impl_->clock->wall())));
        }
        if (!impl_->path.empty()) bytes += gd::fit_line(std::move(line), max_line_bytes);
    }
    const std::lock_guard lock(impl_->mutex);
    if (impl_->file) impl_->file->append(bytes);
    else impl_->memory.insert(impl_->memory.end(), std::make_move_iterator(lines.begin()), std::make_move_iterator(lines.end()));
}

std::vector<json> audit_log::read(std::size_t* skipped) const
{
    if (skipped) *skipped = 0;
    if (!impl_) return {};
    if (impl_->path.empty()) {
        const std::lock_guard lock(impl_->mutex);
        return impl_->memory;
    }
    std::ifstream in(impl_->path, std::ios::binary);
    if (!in) throw error(errc::audit_failed, "[Audit] cannot read " + impl_->path);
    std::vector<json> lines;
    for (std::string text; std::getline(in, text);) {
        if (text.empty()) continue;
        auto parsed = json::parse(text);
        if (parsed && parsed->is_object()) lines.push_back(std::move(*parsed));
        else if (skipped) ++*skipped;
    }
    return lines;
}

const clock_ptr& audit_log::clock() const noexcept
{
    static const clock_ptr none;
    return impl_ ? impl_->clock : none;
}

const std::string& audit_log::path() const noexcept
{
    static const std::string none;
    return impl_ ? impl_->path : none;
}

}  // namespace reagent::inline v0
