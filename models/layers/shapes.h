// What an operation of a device works on, as plain numbers. No member functions: the kernels, which
// are compiled for a newer instruction set, include this file and must not emit inline functions.
#pragma once

#include <cstddef>
#include <cstdint>

namespace domicile::models {

// Stored in plans elsewhere under the same numbers: append, never renumber.
enum class Activation : std::uint8_t {
  kNone = 0,
  kTanh = 1,
  kRelu = 2,
  kSigmoid = 3,
  kGelu = 4,      // x * Phi(x), exact, by erf
  kGeluTanh = 5,  // 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
};

// How the weight of a dense layer lies in memory: [in, out], or [out, in] as PyTorch stores it.
enum class WeightLayout : std::uint8_t { kInOut = 0, kOutIn = 1 };

struct Weight {
  const float* data = nullptr;
  std::size_t inputs = 0;
  std::size_t outputs = 0;
  WeightLayout layout = WeightLayout::kInOut;
};

// An image is one row: [channels, height, width]. Filters are [filters, channels, kernel, kernel],
// applied as PyTorch's conv2d (a cross-correlation). MakeConvShape fills the last four.
struct ConvShape {
  std::size_t channels = 0;
  std::size_t height = 0;
  std::size_t width = 0;
  std::size_t filters = 0;
  std::size_t kernel = 0;
  std::size_t stride = 1;
  std::size_t padding = 0;
  std::size_t out_height = 0;
  std::size_t out_width = 0;
  std::size_t patch = 0;    // channels * kernel * kernel
  std::size_t outputs = 0;  // filters * out_height * out_width
};

// Windows that lie whole inside the image, as PyTorch without padding. MakePoolShape fills the
// rest.
struct PoolShape {
  std::size_t channels = 0;
  std::size_t height = 0;
  std::size_t width = 0;
  std::size_t window = 0;
  std::size_t stride = 0;
  std::size_t out_height = 0;
  std::size_t out_width = 0;
  std::size_t outputs = 0;
};

// A row is [channels, positions]; each of `groups` equal runs of channels of a row is brought to
// mean 0 and (biased) variance 1, then scaled and shifted by channel. A layer norm is groups = 1,
// positions = 1.
struct NormShape {
  std::size_t groups = 1;
  std::size_t channels = 0;
  std::size_t positions = 1;
  float epsilon = 1e-5F;
};

// Rows are [sequence, token]; columns are [head, width].
struct AttentionShape {
  std::size_t length = 0;  // tokens of a sequence, padding included
  std::size_t heads = 0;
  std::size_t width = 0;  // of a head
  bool causal = false;    // a token sees no later one
};

// Which elements are dropped: a hash of (key, index), so that it depends neither on threads nor on
// how a batch is split over replicas. Element i of an operand has the index first + i.
struct DropoutMask {
  std::uint64_t key = 0;
  std::uint64_t first = 0;
  float rate = 0;  // of elements dropped, in [0, 1); the others grow by 1 / (1 - rate)
};

// The constants of one optimizer step; optimizer.h has the formulas.
struct SgdStep {
  float learning_rate = 0;
  float momentum = 0;
  float gradient_share = 1;  // 1 - dampening; 1 on the first step
  float weight_decay = 0;    // added to the gradient
  bool nesterov = false;
};

struct AdamStep {
  float learning_rate = 0;
  float beta1 = 0;
  float beta2 = 0;
  float epsilon = 0;
  float correction1 = 0;      // 1 - beta1^t
  float correction2 = 0;      // 1 - beta2^t
  float decoupled_decay = 0;  // AdamW: parameters *= 1 - learning_rate * decay, before the step
};

}  // namespace domicile::models
