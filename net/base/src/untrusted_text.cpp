#include <reagent/base/untrusted_text.hpp>
#include <reagent/base/utf8.hpp>

#include <utility>

namespace reagent::inline v0 {

std::string untrusted_text(std::string_view foreign, std::size_t max)
{
    std::string out;
    // Repaired piecewise, so that a huge body costs no more than the part that is shown.
    constexpr std::size_t piece = 4096;
    std::size_t shown = 0;
    bool gap = false;  // line breaks and tabs keep words apart
    while (!foreign.empty() && shown < max) {
        std::string_view head = foreign.substr(0, piece);
        if (head.size() < foreign.size()) head.remove_suffix(utf8_incomplete_tail(head));
        foreign.remove_prefix(head.size());
        const std::string text = repair_utf8(head);
        for (std::size_t i = 0; i < text.size() && shown < max;) {
            const auto lead = static_cast<unsigned char>(text[i]);
            const std::size_t n = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
            const bool c1 = lead == 0xC2 && static_cast<unsigned char>(text[i + 1]) < 0xA0;
            if (lead == '\n' || lead == '\r' || lead == '\t') {
                gap = shown != 0 && out.back() != ' ';
            } else if (lead >= 0x20 && lead != 0x7F && !c1) {
                if (std::exchange(gap, false) && lead != ' ') {
                    out += ' ';
                    if (++shown == max) break;
                }
                out.append(text, i, n);
                ++shown;
            }
            i += n;
        }
    }
    return out;
}

std::string hide_secret(std::string_view foreign, std::string_view secret)
{
    constexpr std::size_t shortest = 8;
    std::string out(foreign);
    if (secret.size() < shortest) return out;
    for (std::size_t at = out.find(secret); at != std::string::npos; at = out.find(secret, at)) out.replace(at, secret.size(), "***");
    return out;
}

}  // namespace reagent::inline v0
