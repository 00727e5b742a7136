// valijson's view of a reagent::json. The shape of these classes is dictated by valijson's BasicAdapter.
#pragma once
#include <reagent/base/json.hpp>

#include <valijson/exceptions.hpp>
#include <valijson/internal/adapter.hpp>
#include <valijson/internal/basic_adapter.hpp>
#include <valijson/internal/frozen_value.hpp>

#include <cstddef>
#include <iterator>
#include <string>
#include <utility>

namespace reagent::inline v0::base_detail {

class schema_adapter;
using schema_member = std::pair<std::string, schema_adapter>;

template <class Base, class Out>
class schema_iterator {
public:
    using iterator_category = std::bidirectional_iterator_tag;
    using value_type = Out;
    using difference_type = std::ptrdiff_t;
    using pointer = Out*;
    using reference = Out;

    explicit schema_iterator(Base at) : at_(at) {}
    Out operator*() const;
    valijson::adapters::DerefProxy<Out> operator->() const { return valijson::adapters::DerefProxy<Out>(**this); }
    bool operator==(const schema_iterator& other) const { return at_ == other.at_; }
    bool operator!=(const schema_iterator& other) const { return at_ != other.at_; }
    schema_iterator& operator++()
    {
        ++at_;
        return *this;
    }
    schema_iterator operator++(int)
    {
        schema_iterator before(*this);
        ++at_;
        return before;
    }
    schema_iterator& operator--()
    {
        --at_;
        return *this;
    }
    void advance(std::ptrdiff_t n) { at_ += n; }

private:
    Base at_;
};

using schema_array_iterator = schema_iterator<json::array_type::const_iterator, schema_adapter>;
using schema_object_iterator = schema_iterator<json::object_type::const_iterator, schema_member>;

class schema_array {
public:
    using const_iterator = schema_array_iterator;
    using iterator = schema_array_iterator;

    schema_array() : elements_(none()) {}
    explicit schema_array(const json& v) : elements_(v.as_array()) {}
    const_iterator begin() const { return const_iterator(elements_.begin()); }
    const_iterator end() const { return const_iterator(elements_.end()); }
    std::size_t size() const { return elements_.size(); }

private:
    static const json::array_type& none()
    {
        static const json::array_type empty;
        return empty;
    }
    const json::array_type& elements_;
};

class schema_object {
public:
    using const_iterator = schema_object_iterator;
    using iterator = schema_object_iterator;

    schema_object() : members_(none()) {}
    explicit schema_object(const json& v) : members_(v.as_object()) {}
    const_iterator begin() const { return const_iterator(members_.begin()); }
    const_iterator end() const { return const_iterator(members_.end()); }
    const_iterator find(const std::string& key) const
    {
        auto at = members_.begin();
        while (at != members_.end() && at->first != key) ++at;
        return const_iterator(at);
    }
    std::size_t size() const { return members_.size(); }

private:
    static const json::object_type& none()
    {
        static const json::object_type empty;
        return empty;
    }
    const json::object_type& members_;
};

class frozen_json final : public valijson::adapters::FrozenValue {
public:
    explicit frozen_json(json v) : value_(std::move(v)) {}
    FrozenValue* clone() const override { return new frozen_json(value_); }
    bool equalTo(const valijson::adapters::Adapter& other, bool strict) const override;

private:
    json value_;
};

class schema_value {
public:
    schema_value() : value_(&empty()) {}
    explicit schema_value(const json& v) : value_(&v) {}

    valijson::adapters::FrozenValue* freeze() const { return new frozen_json(*value_); }
    opt::optional<schema_array> getArrayOptional() const
    {
        if (!value_->is_array()) return {};
        return schema_array(*value_);
    }
    bool getArraySize(std::size_t& out) const
    {
        out = value_->size();
        return value_->is_array();
    }
    bool getBool(bool& out) const
    {
        out = value_->get_bool().value_or(false);
        return value_->is_bool();
    }
    bool getDouble(double& out) const
    {
        out = value_->get_double().value_or(0);
        return isDouble();
    }
    bool getInteger(std::int64_t& out) const
    {
        out = value_->get_int64().value_or(0);
        return isInteger();
    }
    opt::optional<schema_object> getObjectOptional() const
    {
        if (!value_->is_object()) return {};
        return schema_object(*value_);
    }
    bool getObjectSize(std::size_t& out) const
    {
        out = value_->size();
        return value_->is_object();
    }
    bool getString(std::string& out) const
    {
        if (const std::string* s = value_->get_string()) out = *s;
        return value_->is_string();
    }
    static bool hasStrictTypes() { return true; }
    bool isArray() const { return value_->is_array(); }
    bool isBool() const { return value_->is_bool(); }
    /// An integral number is an integer however it is written, since draft 6.
    bool isInteger() const { return value_->get_int64().has_value(); }
    bool isDouble() const { return value_->is_number() && !isInteger(); }
    bool isNull() const { return value_->is_null(); }
    bool isNumber() const { return value_->is_number(); }
    bool isObject() const { return value_->is_object(); }
    bool isString() const { return value_->is_string(); }

private:
    static const json& empty()
    {
        static const json object = json::object();
        return object;
    }
    const json* value_;
};

class schema_adapter : public valijson::adapters::BasicAdapter<schema_adapter, schema_array, schema_member, schema_object, schema_value> {
public:
    schema_adapter() = default;
    explicit schema_adapter(const json& v) : BasicAdapter(schema_value(v)) {}
};

template <>
inline schema_adapter schema_array_iterator::operator*() const
{
    return schema_adapter(*at_);
}

template <>
inline schema_member schema_object_iterator::operator*() const
{
    return schema_member(at_->first, schema_adapter(at_->second));
}

inline bool frozen_json::equalTo(const valijson::adapters::Adapter& other, bool strict) const
{
    return schema_adapter(value_).equalTo(other, strict);
}

}  // namespace reagent::inline v0::base_detail

namespace valijson::adapters {
template <>
struct AdapterTraits<reagent::base_detail::schema_adapter> {
    using DocumentType = reagent::json;
    static std::string adapterName() { return "reagent::json"; }
};
}  // namespace valijson::adapters
