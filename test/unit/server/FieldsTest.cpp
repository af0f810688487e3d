#include "runtime/server/Fields.h"

#include <gtest/gtest.h>

using namespace llmrt;
using namespace llmrt::server;

namespace {

class FieldsTest : public testing::Test {
protected:
  Fields &fields(const std::string &json) {
    text_ = json;
    document_.emplace(*JsonDocument::parse(text_));
    fields_.emplace(document_->root());
    return *fields_;
  }
  std::string param() const { return fields_->error() ? fields_->error()->param : ""; }

private:
  std::string text_;
  std::optional<JsonDocument> document_;
  std::optional<Fields> fields_;
};

TEST_F(FieldsTest, NullIsAbsent) {
  Fields &f = fields(R"({"a": null, "b": null})");
  EXPECT_FALSE(f.boolean("a"));
  EXPECT_FALSE(f.number("b", 0, 1));
  EXPECT_FALSE(f.string("c"));
  EXPECT_TRUE(f.ok());
  EXPECT_TRUE(f.unread().empty());
}

TEST_F(FieldsTest, WrongTypesNameTheField) {
  EXPECT_FALSE(fields(R"({"temperature": "hot"})").number("temperature", 0, 2));
  EXPECT_EQ(param(), "temperature");
  EXPECT_FALSE(fields(R"({"stream": 1})").boolean("stream"));
  EXPECT_EQ(param(), "stream");
  EXPECT_FALSE(fields(R"({"model": []})").string("model"));
  EXPECT_EQ(param(), "model");
  EXPECT_FALSE(fields(R"({"n": true})").integer("n", 1, 9));
  EXPECT_EQ(param(), "n");
}

TEST_F(FieldsTest, WholeNumbers) {
  EXPECT_EQ(fields(R"({"n": 1.0})").integer("n", 0, 9), 1);
  EXPECT_EQ(fields(R"({"n": 1e2})").integer("n", 0, 1000), 100);
  EXPECT_EQ(fields(R"({"n": 9223372036854775808})").integer("n", 0, INT64_MAX), INT64_MAX);
  for (const char *text : {R"({"n": 1.5})", R"({"n": -1})", R"({"n": 1e999})", R"({"n": "5"})"}) {
    EXPECT_FALSE(fields(text).integer("n", 0, INT64_MAX)) << text;
    EXPECT_EQ(param(), "n") << text;
  }
}

TEST_F(FieldsTest, NumbersInRange) {
  EXPECT_EQ(fields(R"({"p": 1})").number("p", 0, 1), 1.0);
  for (const char *text : {R"({"p": 1.1})", R"({"p": -0.1})", R"({"p": 1e400})"}) {
    EXPECT_FALSE(fields(text).number("p", 0, 1)) << text;
    EXPECT_EQ(param(), "p") << text;
  }
}

TEST_F(FieldsTest, Ids) {
  EXPECT_EQ(fields(R"({"ids": [0, 9]})").ids("ids", 10), (std::vector<int32_t>{0, 9}));
  for (const char *text : {R"({"ids": [10]})", R"({"ids": [-1]})", R"({"ids": [4294967295]})",
                           R"({"ids": [1.5]})", R"({"ids": ["1"]})", R"({"ids": 1})"}) {
    EXPECT_FALSE(fields(text).ids("ids", 10)) << text;
    EXPECT_EQ(param(), "ids") << text;
  }
}

TEST_F(FieldsTest, LastOfEqualNamesCounts) {
  EXPECT_EQ(fields(R"({"n": 1, "n": 2})").integer("n", 0, 9), 2);
}

TEST_F(FieldsTest, FirstFaultIsKept) {
  Fields &f = fields(R"({"a": 1, "b": 2})");
  f.boolean("a");
  f.boolean("b");
  EXPECT_EQ(param(), "a");
}

TEST_F(FieldsTest, Unread) {
  Fields &f = fields(R"({"known": 1, "strange": 2, "empty": null})");
  f.integer("known", 0, 9);
  EXPECT_EQ(f.unread(), std::vector<std::string>{"strange"});
}

TEST(ToJson, KeepsOrderAndRefusesHugeObjects) {
  std::string text = R"({"b": [1, 2.5, null, true], "a": {"x": "y"}})";
  JsonDocument document = *JsonDocument::parse(text);
  EXPECT_EQ(toJson(document.root())->dump(), R"({"b":[1,2.5,null,true],"a":{"x":"y"}})");
  std::string many = "{";
  for (int i = 0; i < 20000; ++i)
    many += (i ? ",\"" : "\"") + std::to_string(i) + "\":0";
  many += "}";
  JsonDocument large = *JsonDocument::parse(many);
  EXPECT_FALSE(toJson(large.root()));
}

} // namespace
