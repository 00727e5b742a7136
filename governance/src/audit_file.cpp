#include "audit_file.hpp"

#include <reagent/base/error.hpp>

#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace reagent::inline v0::governance_detail {
namespace {

std::string text_of(int number)
{
    return std::generic_category().message(number);
}

void make_directories(const std::string& path)
{
    for (std::size_t at = path.find('/', 1); at != std::string::npos; at = path.find('/', at + 1)) {
        const std::string directory = path.substr(0, at);
        if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST)
            throw config_error("audit.path: cannot make the directory " + directory + ": " + text_of(errno));
    }
}

}  // namespace

audit_file::audit_file(int fd, std::string path, bool torn, write_function write) noexcept : fd_(fd), path_(std::move(path)), torn_(torn), write_(write) {}

audit_file::~audit_file()
{
    ::close(fd_);
}

int audit_file::open(const std::string& path, bool& torn)
{
    make_directories(path);
    struct stat found {};
    // A pipe would block here, and raise SIGPIPE later.
    if (::stat(path.c_str(), &found) == 0 && !S_ISREG(found.st_mode) && !S_ISCHR(found.st_mode))
        throw config_error("audit.path: " + path + " is not a regular file");
    int fd;
    do fd = ::open(path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0600);
    while (fd < 0 && errno == EINTR);
    if (fd < 0) throw config_error("audit.path: cannot open " + path + ": " + text_of(errno));
    char last = '\n';
    const off_t size = ::lseek(fd, 0, SEEK_END);
    // A process that died in the middle of a line left it torn.
    if (size > 0 && S_ISREG(found.st_mode) && ::pread(fd, &last, 1, size - 1) != 1) last = '\n';
    torn = last != '\n';
    return fd;
}

void audit_file::append(std::string_view text)
{
    if (text.empty()) return;
    char newline = '\n';
    iovec parts[2] = {{&newline, 1}, {const_cast<char*>(text.data()), text.size()}};
    iovec* first = torn_ ? parts : parts + 1;
    const std::size_t total = text.size() + (torn_ ? 1 : 0);
    ssize_t n;
    do n = write_(fd_, first, torn_ ? 2 : 1);
    while (n < 0 && errno == EINTR);
    if (n < 0) throw error(errc::audit_failed, "[Audit] cannot write " + path_ + ": " + text_of(errno));
    const std::size_t written = static_cast<std::size_t>(n);
    if (written == total) {
        torn_ = false;
        return;
    }
    const std::size_t of_lines = written - (torn_ && written > 0 ? 1 : 0);
    if (written > 0) torn_ = of_lines > 0 && text[of_lines - 1] != '\n';
    throw error(errc::audit_failed,
                "[Audit] wrote only " + std::to_string(written) + " of " + std::to_string(total) + " bytes to " + path_ + "; is the disk full?");
}

}  // namespace reagent::inline v0::governance_detail
