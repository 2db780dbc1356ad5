// A Horovod program, moved: CIFAR-10 on a ResNet-50 with a classifier of its own, every line of which has its
// counterpart in docs/from_horovod.md.
//
//   build/bin/mox launch -n 2 -- build/bin/cifar_horovod --data_url=DIRECTORY --train_url=runs/cifar
//
// DIRECTORY holds the binary or the Python version of CIFAR-10; models/cifar_resnet/make_cifar_files.py makes
// files of the same formats from Fashion-MNIST.
#include <models/zoo/zoo.h>
#include <moxing/moxing.h>

#include <cstdio>
#include <filesystem>

#include "runtime/text/printable.h"

namespace {

namespace fs = std::filesystem;

// Where this machine reads and writes: data_url and train_url may be on a slow disk that all machines share,
// or in an object store.
struct Place {
  std::string data, train;
  bool is_copy = false;
};
Place place() {
  const fs::path local = mox::flag("local_dir");
  if (local.empty()) return {mox::flag("data_url"), mox::flag("train_url")};
  return {(local / "data").string(), (local / "train").string(), true};
}

// By one process a machine, while the others wait. What an earlier job has left there is not mixed with it.
void copy_in(const Place& place) {
  if (!place.is_copy) return;
  mox::mpi_local_sync_barrier([&] {
    for (const std::string& directory : {place.data, place.train})
      if (mox::file::exists(directory)) mox::file::remove(directory, true);
    mox::file::copy_parallel(mox::flag("data_url"), place.data);
    // Of an earlier start, to go on from.
    if (mox::file::exists(mox::flag("train_url")))
      mox::file::copy_parallel(mox::flag("train_url"), place.train);
  });
}

// Rank 0 has written what there is.
void copy_out(const Place& place) {
  if (place.is_copy && mox::rank() == 0) mox::file::copy_parallel(place.train, mox::flag("train_url"));
  mox::barrier();
}

// The images of a split as float32, less the mean image of the training part.
mox::Dataset input_fn(mox::ModeKeys mode) {
  const bool training = mode == mox::ModeKeys::TRAIN;
  const mox::data::CifarBatch train = mox::data::read_cifar(place().data, 10, "train");
  const int64_t pixels = train.images.shape().elements() / train.images.shape()[0];
  std::vector<double> sum(pixels);
  const auto bytes = train.images.values<uint8_t>();
  for (size_t i = 0; i < bytes.size(); ++i) sum[i % sum.size()] += bytes[i];
  std::vector<float> mean(sum.size());
  for (size_t i = 0; i < sum.size(); ++i) mean[i] = sum[i] / train.images.shape()[0];
  const mox::data::CifarBatch part = training ? train : mox::data::read_cifar(place().data, 10, "test");
  const auto images =
      mox::Dataset::from_arrays({part.images, part.labels}).map([mean](const mox::Element& element) {
        mox::Array image(mox::DType::kFloat32, element[0].shape());
        const auto from = element[0].values<uint8_t>();
        const auto to = image.values<float>();
        for (size_t i = 0; i < to.size(); ++i) to[i] = (static_cast<float>(from[i]) - mean[i]) / 255.0F;
        return mox::Element{image, element[1]};
      });
  // No shard(size(), rank()): the run gives each rank its share of every batch.
  return training ? images.shuffle(part.images.shape()[0]).repeat() : images;
}

mox::ModelSpec model_fn(const mox::Inputs& in, mox::ModeKeys mode) {
  const mox::Tensor images = in[0];  // [batch, 3, 32, 32]
  // Without its last layer: [batch, 2048].
  const auto features = mox::get_model_fn("resnet_v1_50", {.num_classes = 0})(images, mode).logits;
  const auto scope = mox::var_scope("classifier");
  const auto logits = mox::layers::dense(mox::layers::dropout(features, 0.5F, mode), 10, {.name = "logits"});
  if (mode == mox::ModeKeys::PREDICT)
    return {.output_info = {{"class", mox::argmax(logits)}, {"probabilities", mox::softmax(logits)}}};
  const mox::Tensor labels = in[1];  // [batch]
  const auto loss = mox::reduce_mean(mox::sparse_softmax_cross_entropy(logits, labels));
  return {.loss = loss,
          .log_info = {{"loss", loss}, {"accuracy", mox::accuracy(logits, labels)}},
          .metrics = {{"accuracy", mox::metrics::accuracy(logits, labels)}}};
}

}  // namespace

int main(int argc, char** argv) try {
  mox::define_flag("num_steps", 20000, "Steps of one process. Several processes share them.");
  mox::define_flag(
      "local_dir", "",
      "A directory of each machine, of this job alone, into which the data are copied before and out "
      "of which the results are copied after the training. Empty: nothing is copied.");
  mox::init(argc, argv, {{"inter_mode", "eval"}, {"batch_size", 100}, {"log_every_n_steps", 10}});
  const int64_t steps = mox::get_flag<int64_t>("num_steps") / mox::size();
  if (steps < 1) throw mox::InvalidArgument("num_steps must be at least the number of processes");
  copy_in(place());
  const int status = mox::run({.input_fn = input_fn,
                               .model_fn = model_fn,
                               .optimizer_fn = mox::distributed(mox::get_optimizer_fn(
                                   "adam", {.learning_rate = 0.0002 * mox::size(), .beta1 = 0.5})),
                               .log_dir = place().train,
                               .max_number_of_steps = steps,
                               .hooks = {mox::BroadcastGlobalVariablesHook(0)}});
  if (status == 0 || status == mox::kExitInterrupted) copy_out(place());
  return status;
} catch (const std::exception& error) {
  std::fprintf(stderr, "error: %s\n", mox::printable_message(error.what()).c_str());
  return 1;
}
