// The optimizers that have a name, each with the options that it reads beside those that all read
// (OptimizerOptions). A row here declares make_<name>, which the optimizer's .cc defines, lets
// get_optimizer_fn find it, and gives the option optimizer.name its words.
#pragma once

#define MOX_OPTIMIZER_ROWS(ROW)                                              \
  ROW(adadelta, "rho", "epsilon")                                            \
  ROW(adagrad, "initial_accumulator", "epsilon")                             \
  ROW(adam, "beta1", "beta2", "epsilon")                                     \
  ROW(adamw, "beta1", "beta2", "epsilon")                                    \
  ROW(ftrl, "initial_accumulator", "l1_regularization", "l2_regularization") \
  ROW(momentum, "momentum", "nesterov")                                      \
  ROW(rmsprop, "rho", "momentum", "epsilon", "centered")                     \
  ROW(sgd)
