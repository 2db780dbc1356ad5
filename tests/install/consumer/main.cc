#include <all_headers.h>

#include <iostream>

int main() {
  const mox::Array values(mox::DType::kFloat32, {2, 3});
  std::cout << mox::to_string(values.type()) << " holds " << values.elements() << " elements\n";
}
