#include <reagent/net/ndjson.hpp>

#include <utility>

namespace reagent::inline v0 {

void ndjson_reader::take(const framed_line& line, ndjson_item& out)
{
    out.text = line.text;
    out.line = line.number;
    out.value = json();
    if (line.too_long) {
        out.kind = ndjson_kind::too_long;
        ++too_long_;
        return;
    }
    boost::system::result<json> parsed = json::parse(line.text);
    if (!parsed) {
        out.kind = ndjson_kind::not_json;
        ++not_json_;
        return;
    }
    out.kind = ndjson_kind::value;
    out.value = std::move(*parsed);
    ++values_;
}

bool ndjson_reader::next(ndjson_item& out)
{
    framed_line line;
    if (!framer_.next(line)) return false;
    take(line, out);
    return true;
}

bool ndjson_reader::finish(ndjson_item& out)
{
    framed_line line;
    if (!framer_.finish(line)) return false;
    take(line, out);
    return true;
}

}  // namespace reagent::inline v0
