#pragma once
#include <reagent/net/http_server.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace reagent::inline v0::net_detail {

/// Which handler takes a request. No I/O.
class server_routes {
public:
    struct entry {
        std::string method, pattern;
        std::vector<std::string> segments;
        bool rest = false;  ///< ends in `*`
        http_server::handler handler;
    };
    struct verdict {
        const entry* found = nullptr;
        std::string allow;  ///< with no `found`: the methods the path has, empty when it is unknown
    };

    void add(std::string method, std::string pattern, http_server::handler f);
    verdict match(std::string_view method, std::string_view path, std::vector<std::pair<std::string, std::string>>* parameters) const;
    http_server::handler fallback;

private:
    std::vector<std::unique_ptr<entry>> entries_;  // their addresses last, whatever a handler adds
};

}  // namespace reagent::inline v0::net_detail
