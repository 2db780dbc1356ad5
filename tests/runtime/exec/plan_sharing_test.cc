// Memory and identity of a plan where two uses meet in one value.
#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <functional>

#include "runtime/base/error.h"
#include "runtime/exec/evaluate.h"
#include "runtime/exec/plan.h"

namespace mox {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const TensorType kFour{DType::kFloat32, {4}};

SourceLocation this_place(SourceLocation where = SourceLocation::current()) { return where; }

const Op kTwice{.name = "test_twice", .infer = same_as_input, .compile = [](const KernelRequest& request) {
                  return plain_kernel(request.node, [](const KernelArguments& args) {
                    for (int i = 0; i < 4; ++i) args.output<float>(0)[i] = 2 * args.input<float>(0)[i];
                  });
                }};
// a plus b backwards: may run in the memory of a, not of b.
const Op kAddBackwards{
    .name = "test_add_backwards", .infer = same_as_input, .compile = [](const KernelRequest& request) {
      Kernel kernel = plain_kernel(request.node, [](const KernelArguments& args) {
        for (int i = 0; i < 4; ++i)
          args.output<float>(0)[i] = args.input<float>(0)[i] + args.input<float>(1)[3 - i];
      });
      kernel.in_place = {{0, 0}};
      return kernel;
    }};
const Op kWithoutKernel{.name = "test_without_kernel", .infer = same_as_input};
const Op kWithoutLayouts{.name = "test_without_layouts",
                         .infer = same_as_input,
                         .compile = [](const KernelRequest&) { return Kernel{}; }};

Tensor add_backwards(const Tensor& a, const Tensor& b) {
  return make_tensor(kAddBackwards, {a, b}, {}, this_place());
}

class PlanSharingTest : public ::testing::Test {
 protected:
  Tensor input(int component) { return graph_.input(component, kFour, this_place()); }
  static Tensor twice(const Tensor& a) { return make_tensor(kTwice, {a}, {}, this_place()); }
  std::shared_ptr<const Plan> compile(const Tensor& fetch) {
    return Plan::compile(graph_, {.fetches = {fetch}, .gradients = {}, .after_step_values = {}}, {}, Team(1));
  }
  std::string refusal(const Tensor& fetch) {
    try {
      compile(fetch);
    } catch (const InvalidArgument& error) {
      return error.what();
    }
    return "";
  }

  Graph graph_;
  GraphScope scope_{graph_};
};

TEST_F(PlanSharingTest, AnInputThatIsReadInAnotherOrderTooIsNotOverwritten) {
  const Tensor y = twice(input(0));
  const std::vector<Tensor> fetches = {twice(add_backwards(y, y))};
  const std::vector<Array> batch = {Array::from<float>({4}, {1, 2, 3, 4})};
  EXPECT_THAT(evaluate(fetches, batch, {})[0].values<float>(), ElementsAre(20, 20, 20, 20));
}

// Each call builds a graph of its own, so that nothing but what is built can differ.
uint64_t fingerprint_of(const std::function<Tensor(Graph& graph, const Tensor& x, const Tensor& y)>& build) {
  Graph graph;
  const Tensor x = graph.input(0, kFour, this_place()), y = graph.input(1, kFour, this_place());
  return Plan::compile(graph, {.fetches = {build(graph, x, y)}, .gradients = {}, .after_step_values = {}}, {},
                       Team(1))
      ->fingerprint();
}

TEST_F(PlanSharingTest, TheFingerprintKnowsWhoReadsWhat) {
  auto forth = [](Graph&, const Tensor& x, const Tensor& y) { return add_backwards(x, y); };
  auto back = [](Graph&, const Tensor& x, const Tensor& y) { return add_backwards(y, x); };
  EXPECT_EQ(fingerprint_of(forth), fingerprint_of(forth));
  EXPECT_NE(fingerprint_of(forth), fingerprint_of(back));
}

TEST_F(PlanSharingTest, TheFingerprintKnowsTheConstants) {
  auto with_constant = [](float value) {
    return fingerprint_of([value](Graph& graph, const Tensor& x, const Tensor&) {
      return add_backwards(x, graph.constant(Array::from<float>({4}, {value, 0, 0, 0}), this_place()));
    });
  };
  EXPECT_EQ(with_constant(1), with_constant(1));
  EXPECT_NE(with_constant(1), with_constant(2));
}

TEST_F(PlanSharingTest, AnOpWithoutAUsableKernelIsTheMistakeOfItsWriter) {
  EXPECT_THAT(refusal(make_tensor(kWithoutKernel, {input(0)}, {}, this_place())),
              HasSubstr("set Op::compile"));
  EXPECT_THAT(refusal(make_tensor(kWithoutLayouts, {input(0)}, {}, this_place())), HasSubstr("plain_kernel"));
}

}  // namespace
}  // namespace mox
