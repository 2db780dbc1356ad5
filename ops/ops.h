// Every op of the public vocabulary.
#pragma once

#include "ops/activation/activation.h"
#include "ops/arithmetic/arithmetic.h"
#include "ops/comparison/comparison.h"
#include "ops/convolution/conv2d.h"
#include "ops/convolution/geometry/padding.h"
#include "ops/elementwise/operand.h"
#include "ops/gradients.h"
#include "ops/indexing/indexing.h"
#include "ops/losses/losses.h"
#include "ops/matmul/matmul.h"
#include "ops/normalisation/normalisation.h"
#include "ops/pooling/pooling.h"
#include "ops/random/random.h"
#include "ops/reduction/reduction.h"
#include "ops/shape/shape.h"
#include "ops/softmax/softmax.h"
