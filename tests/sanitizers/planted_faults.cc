// A program with one fault of each kind that the sanitizer builds must find; the argument chooses.
#include <iostream>
#include <memory>
#include <string_view>
#include <vector>

#include "runtime/data/pipeline.h"

namespace {

// Two threads of the pipeline increment one number.
void race_in_map() {
  int64_t count = 0;
  const mox::Dataset data = mox::Dataset::from_arrays({mox::Array(mox::DType::kFloat32, {4000, 4})})
                                .map([&count](const mox::Element& element) {
                                  ++count;
                                  return element;
                                })
                                .batch(16);
  mox::Pipeline pipeline(data, {.threads = 2});
  mox::Batch batch;
  while (pipeline.next(&batch)) {
  }
  std::cout << count << "\n";
}

void overflow(int elements) {
  const std::vector<int> values(static_cast<size_t>(elements));
  std::cout << values.data()[elements] << "\n";
}

void leak() { std::cout << *std::make_unique<int>(7).release() << "\n"; }

void undefined(int value) { std::cout << value + 0x7fffffff << "\n"; }

}  // namespace

int main(int argc, char** argv) {
  const std::string_view fault = argc == 2 ? argv[1] : "";
  if (fault == "race_in_map") {
    race_in_map();
  } else if (fault == "overflow") {
    overflow(argc);
  } else if (fault == "leak") {
    leak();
  } else if (fault == "undefined") {
    undefined(argc);
  } else {
    std::cerr << "usage: planted_faults race_in_map|overflow|leak|undefined\n";
    return 2;
  }
  return 0;
}
