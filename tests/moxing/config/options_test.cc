// The values of options: where they come from, which of them counts, and what is refused.
#include "moxing/config/options.h"

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "moxing/config/flags.h"
#include "moxing/config/init.h"
#include "moxing/optimizers/optimizer.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "tests/moxing/config/config_testing.h"

namespace mox {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Options, EveryDeclarationIsCompleteAndItsDefaultIsAccepted) {
  std::set<std::string> names;
  const ScopedConfiguration scope(std::vector<std::string>{});
  for (const Option& option : built_in_options()) {
    EXPECT_TRUE(names.insert(option.name).second) << option.name;
    EXPECT_FALSE(option.group.empty()) << option.name;
    EXPECT_TRUE(option.help.ends_with(".") || option.help.ends_with(").")) << option.name;
    EXPECT_EQ(option_origin(option.name), "default");
    if (std::holds_alternative<std::monostate>(option.default_value)) continue;
    EXPECT_NO_THROW(internal::set_flag(option.name, option.default_value)) << option.name;
  }
}

TEST(Options, CommandLineBeatsFileBeatsCodeBeatsDefault) {
  const TemporaryFile yaml("\nbatch_size: 10\nkeep_checkpoints: 3\n");
  const ScopedConfiguration scope({"--config", yaml.path(), "--batch_size=20"});
  EXPECT_EQ(resolve<int64_t>("batch_size", 5), 20);
  EXPECT_EQ(option_origin("batch_size"), "command line");
  EXPECT_EQ(resolve<int64_t>("keep_checkpoints", 7), 3);
  EXPECT_EQ(option_origin("keep_checkpoints"), yaml.path() + ":3");
  EXPECT_EQ(resolve<int64_t>("log_every_n_steps", 7), 7);
  EXPECT_EQ(option_origin("log_every_n_steps"), "code");
  EXPECT_EQ(resolve<int64_t>("prefetch_batches", std::nullopt), 2);
  EXPECT_EQ(option_origin("prefetch_batches"), "default");
}

TEST(Options, ASecondRunDoesNotSeeTheCodeOfTheFirst) {
  const ScopedConfiguration scope(std::vector<std::string>{});
  EXPECT_EQ(resolve<int64_t>("batch_size", 5), 5);
  EXPECT_EQ(resolve<int64_t>("batch_size", std::nullopt), 32);
}

TEST(Options, FilesGiveEveryType) {
  const TemporaryFile yaml(
      "auto_batch: False\n"
      "data_url: 2024\n"
      "optimizer:\n"
      "  learning_rate: 5:0.1->0.4,10:0.4=>0.8\n"
      "  momentum: 1e-1\n"
      "optimizer.weight_decay: 1\n");
  const ScopedConfiguration scope({"--config=" + yaml.path()});
  EXPECT_FALSE(resolve<bool>("auto_batch", std::nullopt));
  EXPECT_EQ(resolve<std::string>("data_url", std::nullopt), "2024");
  EXPECT_EQ(resolve<NumberOrString>("optimizer.learning_rate", std::nullopt),
            NumberOrString("5:0.1->0.4,10:0.4=>0.8"));
  EXPECT_EQ(resolve<double>("optimizer.momentum", std::nullopt), 0.1);
  EXPECT_EQ(resolve<double>("optimizer.weight_decay", std::nullopt), 1.0);
}

TEST(Options, AnEmptyFileSetsNothing) {
  for (const char* content : {"", "# nothing\n", "optimizer:\n"}) {
    const TemporaryFile yaml(content);
    const ScopedConfiguration scope({"--config=" + yaml.path()});
    EXPECT_EQ(option_origin("optimizer.name"), "default");
  }
}

TEST(Options, AnOptionMayHaveNoValue) {
  const ScopedConfiguration scope({"--optimizer.nesterov"});
  EXPECT_EQ(resolve_optional<bool>("optimizer.nesterov", std::nullopt), std::optional(true));
  EXPECT_EQ(resolve_optional<double>("optimizer.momentum", std::nullopt), std::nullopt);
  EXPECT_EQ(option_origin("optimizer.momentum"), "default");
  EXPECT_EQ(flag("optimizer.momentum"), "");
  EXPECT_THAT(effective_configuration(), Not(HasSubstr("momentum")));
  EXPECT_THAT(message_of<InvalidArgument>([] { get_flag<double>("optimizer.momentum"); }),
              HasSubstr("has no value"));
  EXPECT_THAT(message_of<InvalidArgument>([] { resolve<double>("optimizer.momentum", std::nullopt); }),
              HasSubstr("has no value; use resolve_optional"));
  EXPECT_EQ(resolve_optional<double>("optimizer.momentum", 0.5), std::optional(0.5));
}

TEST(Options, OptimizerNamesAreThoseThatExist) {
  for (const Option& option : built_in_options()) {
    if (option.name == "optimizer.name") {
      EXPECT_THAT(option.allowed, ::testing::UnorderedElementsAreArray(optimizer_names()));
    }
  }
}

TEST(Options, ALearningRateIsANumberOrASchedule) {
  EXPECT_EQ((ScopedConfiguration({"--optimizer.learning_rate=0.5"}),
             resolve<NumberOrString>("optimizer.learning_rate", std::nullopt)),
            NumberOrString(0.5));
  EXPECT_EQ((ScopedConfiguration({"--optimizer.learning_rate", "1:0.1->0.2"}),
             resolve<NumberOrString>("optimizer.learning_rate", std::nullopt)),
            NumberOrString("1:0.1->0.2"));
}

struct Refusal {
  std::string yaml;
  std::vector<std::string> expected;  // {FILE} stands for the path
};

void PrintTo(const Refusal& refusal, std::ostream* stream) {
  *stream << ::testing::PrintToString(refusal.yaml);
}

class RefusedFile : public ::testing::TestWithParam<Refusal> {};

TEST_P(RefusedFile, NamesFileLineAndReason) {
  const TemporaryFile yaml(GetParam().yaml);
  const std::string message = refusal({"--config=" + yaml.path()});
  for (std::string piece : GetParam().expected) {
    for (size_t at; (at = piece.find("{FILE}")) != std::string::npos;) piece.replace(at, 6, yaml.path());
    EXPECT_THAT(message, HasSubstr(piece));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Options, RefusedFile,
    ::testing::Values(
        Refusal{
            "# run\nbach_size: 3\n",
            {"{FILE}:2: unknown key 'bach_size'; the nearest known key is 'batch_size' (--help lists all)."}},
        Refusal{"learning_rate: 3\n",
                {"{FILE}:1: unknown key 'learning_rate'", "is 'optimizer.learning_rate'"}},
        Refusal{"optimizer:\n  nmae: sgd\n",
                {"{FILE}:2: unknown key 'optimizer.nmae'", "is 'optimizer.name'"}},
        Refusal{"batch_size: many\n", {"{FILE}:1: batch_size expects an integer (digits only), got 'many'."}},
        Refusal{"\n\nbatch_size: '64'\n", {"{FILE}:3: batch_size expects an integer", "got the text '64'."}},
        Refusal{"batch_size: 1e3\n", {"{FILE}:1: batch_size expects an integer (digits only), got '1e3'."}},
        Refusal{"batch_size: 10.5\n", {"{FILE}:1: batch_size expects an integer (digits only), got '10.5'."}},
        Refusal{"batch_size: 99999999999999999999\n", {"{FILE}:1: batch_size must fit in 64 bits"}},
        Refusal{"batch_size: [1, 2]\n", {"{FILE}:1: batch_size expects an integer", "got a list of 2."}},
        Refusal{"batch_size: {a: 1}\n",
                {"{FILE}:1: batch_size expects an integer", "got a section of keys."}},
        Refusal{"seed: 1\nbatch_size:\n", {"{FILE}:2: batch_size expects an integer", "got nothing."}},
        Refusal{"data_url: ~\n", {"{FILE}:1: data_url expects text, got nothing."}},
        Refusal{"auto_batch: maybe\n", {"{FILE}:1: auto_batch expects true or false, got 'maybe'."}},
        Refusal{"clip_gradient_norm: nan\n",
                {"{FILE}:1: clip_gradient_norm expects a finite number, got 'nan'."}},
        Refusal{"clip_gradient_norm: 1e999\n", {"{FILE}:1: clip_gradient_norm expects a finite number"}},
        Refusal{"batch_size: 0\n", {"{FILE}:1: batch_size must be at least 1, got 0."}},
        Refusal{"threads: 5000\n", {"{FILE}:1: threads must be 0 to 4096, or auto, got 5000."}},
        Refusal{"optimizer: {learning_rate: -1}\n",
                {"{FILE}:1: optimizer.learning_rate must be at least 0, got -1."}},
        Refusal{"run_mode: trian\n",
                {"{FILE}:1: run_mode must be train, eval or predict, got 'trian'; the nearest is 'train'."}},
        Refusal{"seed: 1\nseed: 2\n",
                {"{FILE}:2: 'seed' is already given at {FILE}:1; keep one of the two."}},
        Refusal{"optimizer:\n  name: sgd\noptimizer.name: adam\n",
                {"{FILE}:3: 'optimizer.name' is already given at {FILE}:2"}},
        Refusal{"optimizer: sgd\n",
                {"{FILE}:1: 'optimizer' is a section; indent one of its keys below it (name, learning_rate, "
                 "momentum, nesterov, weight_decay, beta1, beta2, rho, epsilon, centered, "
                 "initial_accumulator, l1_regularization, l2_regularization, groups)."}},
        Refusal{"config: other.yaml\n", {"{FILE}:1: 'config' can only be given on the command line"}},
        Refusal{"- 1\n- 2\n",
                {"{FILE}:1: a configuration is made of lines 'key: value'; this file holds a list."}},
        Refusal{"just words\n", {"{FILE}:1: a configuration is made of lines", "holds a text."}},
        Refusal{"seed: 1\n---\nseed: 2\n", {"the file holds 2 YAML documents"}},
        Refusal{"[a, b]: 1\n", {"{FILE}:1: a key must be a name."}},
        Refusal{"seed: 1\n  batch_size: [\n", {"{FILE}:2: the file is not well-formed YAML: "}},
        Refusal{"seed: *missing\n", {"{FILE}:1: the file is not well-formed YAML: "}},
        Refusal{"data_url: \"open\nbatch_size: 3\n", {"the file is not well-formed YAML: "}},
        Refusal{"data_url: 'open\nbatch_size: 3", {"the file is not well-formed YAML: "}},
        Refusal{"optimizer: &a\n  name: *a\n", {"optimizer.name expects text, got a section of keys."}}));

TEST(Options, AFileThatCannotBeReadIsRefused) {
  EXPECT_EQ(refusal({"--config=/nowhere/run.yaml"}), "--config: there is no file '/nowhere/run.yaml'.");
  EXPECT_EQ(refusal({"--config=/tmp"}), "--config: '/tmp' is a directory; name a YAML file.");
  EXPECT_EQ(refusal({"--config=/dev/zero"}), "--config: '/dev/zero' is not a file.");
  const TemporaryFile large(std::string((4 << 20) + 1, ' '));
  EXPECT_THAT(refusal({"--config=" + large.path()}), HasSubstr("is larger than 4 MiB"));
}

TEST(Options, AFileOfTooManyValuesIsRefused) {
  std::string lists = "layers: [";
  for (int i = 0; i < 20'000; ++i) lists += "[],";
  // In a file that is large enough for so many.
  const TemporaryFile bomb("seed: 1\n" + lists + "]\n# " + std::string(40'000, '-') + "\n");
  EXPECT_THAT(refusal({"--config=" + bomb.path()}), HasSubstr(":2: the file holds more than 20000 values"));
}

TEST(Options, AFileOfMoreValuesThanItsSizeAllowsIsRefused) {
  const auto list_of = [](int count, const std::string& begin, const std::string& end) {
    std::string content = begin;
    for (int i = 0; i < count; ++i) content += "1" + end;
    return content;
  };
  const auto refusal_of = [](const std::string& content) {
    const TemporaryFile yaml(content);
    return refusal({"--config=" + yaml.path()});
  };
  EXPECT_THAT(refusal_of(list_of(9'000, "files: [", ",") + "]\n"),
              HasSubstr(":1: the file holds more values than a configuration of its size does"));
  std::string lines = "files:\n";
  for (int i = 0; i < 9'000; ++i) lines += "- a\n";
  EXPECT_THAT(refusal_of(lines), HasSubstr("the file holds more values than"));
  // The parser reads a list whole whose bracket begins a line, or a section.
  const std::string long_list = list_of(9'000, "files:\n  [", ",") + "]\n";
  EXPECT_THAT(refusal_of(long_list), HasSubstr(":1: what is in brackets from here on is too long"));
  EXPECT_THAT(refusal_of("{" + list_of(9'000, "\"files\": [", ",") + "]}\n"),
              HasSubstr("Put the '[' or '{' behind its key"));
  std::string texts;
  for (int i = 0; i < 9'000; ++i) texts += "\"\n\"";  // no line ends outside of quotes
  EXPECT_THAT(refusal_of(texts), HasSubstr("is too long"));
}

TEST(Options, ListsOfAThousandAndLongCommentsAreRead) {
  std::string row, lines, comment;
  for (int i = 0; i < 1000; ++i) {
    row += (i > 0 ? "," : "") + std::to_string(i % 10);
    lines += "- " + std::to_string(i % 10) + "\n";
    comment +=
        "# Don't worry: lists [1, 2], sections {a: b}, 'quotes' and \"more\", and so on. It's a comment.\n";
  }
  const auto numbers_of = [](const std::string& content) {
    const TemporaryFile yaml(content);
    ScopedConfiguration scope;
    define_flag("numbers", std::vector<int64_t>{}, "Numbers.");
    configure({.program = "p", .arguments = {"--config=" + yaml.path()}});
    return get_flag<std::vector<int64_t>>("numbers").size();
  };
  EXPECT_EQ(numbers_of("numbers: [" + row + "]\n"), 1000u);
  EXPECT_EQ(numbers_of("numbers:\n" + lines), 1000u);
  EXPECT_EQ(numbers_of(comment + "numbers: [" + row + "]\n" + comment), 1000u);
  EXPECT_EQ(numbers_of("# A short one.\nnumbers:\n  [" + row.substr(0, 599) + "]\n"), 300u);
}

TEST(Options, DeepNestingIsRefused) {
  for (const char* opening : {"[", "{a: ", "- "}) {
    std::string content = "data_url:\n  ";
    for (int i = 0; i < 20000; ++i) content += opening;
    const TemporaryFile yaml(content);
    EXPECT_THAT(refusal({"--config=" + yaml.path()}), HasSubstr("the file is not well-formed YAML: "))
        << opening;
  }
}

TEST(Options, RandomBytesAreRefusedOrRead) {
  const std::string content = "seed: 1\noptimizer:\n  name: sgd\n  learning_rate: 0.1\nrun_mode: train\n";
  for (size_t i = 0; i < content.size(); ++i) {
    for (char byte : {'\0', '\xff', '{', ':', '&', '\t', '-', '\n'}) {
      std::string damaged = content;
      damaged[i] = byte;
      const TemporaryFile file(damaged);
      try {
        const ScopedConfiguration scope({"--config=" + file.path()});
      } catch (const ConfigError& failure) {
        EXPECT_THAT(failure.what(), HasSubstr(file.path()));
      }
    }
  }
}

TEST(Options, ValuesFromCodeAreChecked) {
  const ScopedConfiguration scope(std::vector<std::string>{});
  EXPECT_EQ(message_of<ConfigError>([] { resolve<int64_t>("batch_size", 0); }),
            "code: batch_size must be at least 1, got 0.");
  EXPECT_EQ(message_of<ConfigError>([] { resolve<std::string>("run_mode", "fly"); }),
            "code: run_mode must be train, eval or predict, got 'fly'.");
  EXPECT_THAT(message_of<InvalidArgument>([] { resolve<std::string>("batch_size", std::nullopt); }),
              HasSubstr("'batch_size' is of type integer"));
  EXPECT_THAT(message_of<NotFound>([] { resolve<int64_t>("batchsize", std::nullopt); }),
              HasSubstr("'batch_size'"));
}

TEST(Options, TheEffectiveConfigurationShowsOriginsAndCanBeReadAgain) {
  const TemporaryFile yaml("data_url: \"a \\\"b\\\": #c\\n\"\n");
  std::string text;
  {
    ScopedConfiguration scope;
    define_flag("hidden.units", std::vector<int64_t>{3, 4}, "Units.");
    define_flag("hidden.names", std::vector<std::string>{"a, b", ""}, "Names.");
    ASSERT_FALSE(
        configure({.program = "p", .arguments = {"--config", yaml.path(), "--optimizer.momentum=0.1"}}));
    resolve<int64_t>("batch_size", 77);
    text = effective_configuration();
  }
  EXPECT_THAT(text, AllOf(HasSubstr("batch_size: 77                            # code\n"),
                          HasSubstr("\noptimizer:\n  momentum: 0.1 "), HasSubstr("# command line\n"),
                          HasSubstr("# " + yaml.path() + ":1\n"), HasSubstr("# default\n"),
                          Not(HasSubstr("\nconfig:"))));
  const TemporaryFile again(text);
  ScopedConfiguration scope;
  define_flag("hidden.units", std::vector<int64_t>{}, "Units.");
  define_flag("hidden.names", std::vector<std::string>{}, "Names.");
  ASSERT_FALSE(configure({.program = "p", .arguments = {"--config", again.path()}}));
  EXPECT_EQ(flag("data_url"), "a \"b\": #c\n");
  EXPECT_EQ(get_flag<double>("optimizer.momentum"), 0.1);
  EXPECT_EQ(get_flag<std::vector<int64_t>>("hidden.units"), (std::vector<int64_t>{3, 4}));
  EXPECT_EQ(get_flag<std::vector<std::string>>("hidden.names"), (std::vector<std::string>{"a, b", ""}));
  EXPECT_THAT(option_origin("batch_size"), HasSubstr(again.path()));
}

// ./dev docs sets MOX_WRITE_DOCS, which writes the page instead of comparing it.
TEST(ConfigurationReference, ThePageIsUpToDate) {
  const std::string path = MOX_SOURCE_DIR "/docs/configuration.md";
  if (std::getenv("MOX_WRITE_DOCS")) write_file_atomically(path, configuration_reference());
  EXPECT_EQ(read_file(path), configuration_reference()) << "./dev docs writes it anew";
}

TEST(ConfigurationReference, NamesEveryOption) {
  for (const Option& option : built_in_options()) {
    EXPECT_THAT(configuration_reference(), HasSubstr("| `" + option.name + "` |"));
  }
}

}  // namespace
}  // namespace mox
