#include "bench/gloo_allreduce.h"

#include <gloo/allreduce.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <cstdlib>

namespace bench {
namespace {

class Connected : public GlooAllreduce {
 public:
  Connected(int rank, int ranks, const std::string& directory) {
    gloo::transport::tcp::attr attributes;
    const char* interface = std::getenv("GLOO_SOCKET_IFNAME");  // as PyTorch has it
    attributes.iface = interface ? interface : "lo";
    auto device = gloo::transport::tcp::CreateDevice(attributes);
    gloo::rendezvous::FileStore store(directory);
    auto context = std::make_shared<gloo::rendezvous::Context>(rank, ranks);
    context->connectFullMesh(store, device);
    context_ = std::move(context);
  }

  void sum(std::span<float> values) override {
    gloo::AllreduceOptions options(context_);
    options.setOutput(values.data(), values.size());
    options.setReduceFunction([](void* sum, const void* left, const void* right, size_t n) {
      gloo::sum<float>(sum, left, right, n);
    });
    gloo::allreduce(options);
  }

 private:
  std::shared_ptr<gloo::Context> context_;
};

}  // namespace

std::unique_ptr<GlooAllreduce> make_gloo_allreduce(int rank, int ranks, const std::string& directory) {
  return std::make_unique<Connected>(rank, ranks, directory);
}

}  // namespace bench
