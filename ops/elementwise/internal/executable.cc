#include "ops/elementwise/internal/executable.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "ops/elementwise/internal/convert.h"
#include "ops/elementwise/internal/functions.h"
#include "runtime/base/error.h"

namespace mox::elementwise {
namespace {

constexpr int64_t kBlock = 512;  // 2 KB a float register: a dozen of them stay in a 32 KB cache
constexpr int64_t kLargestBlock = 1024;
constexpr int64_t kSliceCost = 1 << 15;  // work for which waking another thread pays off, in additions
constexpr int kMaxValues = 64;

int64_t round_up(int64_t count) { return (count + kLane - 1) / kLane * kLane; }

// A multiple of every short period, so that what repeats is gathered once for all blocks.
int64_t choose_block(const std::vector<Access>& accesses) {
  int64_t unit = kLane;
  for (const Access& access : accesses) {
    if (access.kind() != Access::Kind::kPeriodic || access.period() > kLargestBlock) continue;
    const int64_t common = std::lcm(unit, access.period());
    if (common <= kLargestBlock) unit = common;
  }
  return unit * std::max<int64_t>(1, kBlock / unit);
}

// A register for each value; the registers of intermediate results are used again after their last reader.
void allocate_registers(Executable* executable) {
  const Program& program = executable->program;
  std::vector<size_t> last_use(program.values(), 0);
  for (size_t i = 0; i < program.instructions.size(); ++i)
    for (int operand : program.instructions[i].operands)
      if (operand >= 0) last_use[operand] = i;
  std::vector<int> free;
  for (int input = 0; input < program.inputs; ++input)
    executable->register_of.push_back(executable->registers++);
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    const Instruction& instruction = program.instructions[i];
    if (instruction.opcode == Opcode::kConstant) {  // filled once, kept
      executable->register_of.push_back(executable->registers++);
      continue;
    }
    std::vector<int> released;
    for (int operand : instruction.operands) {
      if (operand < program.inputs || last_use[operand] != i) continue;
      const auto& producer = program.instructions[operand - program.inputs];
      const int its_register = executable->register_of[operand];
      if (producer.opcode != Opcode::kConstant &&
          std::find(released.begin(), released.end(), its_register) == released.end())
        released.push_back(its_register);
    }
    free.insert(free.end(), released.begin(), released.end());  // a loop may write over its own operand
    if (free.empty()) free.push_back(executable->registers++);
    executable->register_of.push_back(free.back());
    free.pop_back();
  }
}

// The loops of a program's instructions, for one number type.
template <typename Register>
using Functions = std::vector<BlockFunction<Register>>;

// The run of one slice of the blocks, in its own registers.
template <typename Register>
class Slice {
 public:
  Slice(const Executable& executable, const Functions<Register>& functions, const KernelArguments& arguments,
        int64_t slice)
      : executable_(executable),
        functions_(functions),
        arguments_(arguments),
        registers_(reinterpret_cast<Register*>(arguments.scratch) +
                   slice * executable.registers * executable.block),
        values_(registers_of_values()) {}

  void run(int64_t first_block, int64_t last_block) {
    fill_what_stays();
    for (int64_t b = first_block; b < last_block; ++b) {
      const int64_t begin = b * executable_.block;
      run_block(begin, std::min(executable_.block, executable_.elements - begin));
    }
  }

 private:
  struct Values {
    const Register* at[kMaxValues];
  };

  Register* register_of(int value) const {
    return registers_ + executable_.register_of[value] * executable_.block;
  }

  Values registers_of_values() const {
    Values values;
    for (int v = 0; v < executable_.program.values(); ++v) values.at[v] = register_of(v);
    return values;
  }

  // Whether input `i` is the same in every block.
  bool stays(int i) const {
    const Access& access = executable_.accesses[i];
    return access.kind() == Access::Kind::kScalar ||
           (access.kind() == Access::Kind::kPeriodic && executable_.block % access.period() == 0);
  }

  void fill_what_stays() {
    const int64_t count = std::min(executable_.block, executable_.elements);
    const Program& program = executable_.program;
    for (int i = 0; i < program.inputs; ++i)
      if (stays(i)) gather(i, 0, count);
    for (size_t i = 0; i < program.instructions.size(); ++i)
      if (program.instructions[i].opcode == Opcode::kConstant)
        std::fill_n(register_of(program.inputs + static_cast<int>(i)), round_up(count),
                    static_cast<Register>(program.instructions[i].constant));
  }

  // Fills the input's register with its elements for [begin, begin + count), and zeros up to a whole lane.
  void gather(int i, int64_t begin, int64_t count) {
    const Access& access = executable_.accesses[i];
    const DType dtype = executable_.input_dtypes[i];
    const size_t element = size_of(dtype);
    const std::byte* from = arguments_.inputs[i];
    Register* to = register_of(i);
    if (access.kind() == Access::Kind::kDirect) {
      load_elements(from + begin * element, dtype, count, to);
    } else if (dtype == dtype_of<Register>) {
      access.gather(from, element, begin, count, reinterpret_cast<std::byte*>(to));
    } else {
      alignas(64) std::byte gathered[kLargestBlock * sizeof(int64_t)];
      access.gather(from, element, begin, count, gathered);
      load_elements(gathered, dtype, count, to);
    }
    std::fill(to + count, to + round_up(count), Register{});
  }

  // The elements of input `i` where they lie, if that is possible; its register, filled, otherwise.
  const Register* load(int i, int64_t begin, int64_t count) {
    if (stays(i)) return register_of(i);
    const Access& access = executable_.accesses[i];
    if (executable_.input_dtypes[i] == dtype_of<Register> && count % kLane == 0) {
      const Register* from = arguments_.input<Register>(i);
      if (access.kind() == Access::Kind::kDirect) return from + begin;
      if (access.kind() == Access::Kind::kPeriodic && begin % access.period() + count <= access.period())
        return from + begin % access.period();
    }
    gather(i, begin, count);
    return register_of(i);
  }

  void run_block(int64_t begin, int64_t count) {
    const Program& program = executable_.program;
    for (int i = 0; i < program.inputs; ++i) values_.at[i] = load(i, begin, count);

    std::byte* const output = arguments_.outputs[0] + begin * size_of(executable_.output_dtype);
    const bool write_there = executable_.output_dtype == dtype_of<Register> && count % kLane == 0 &&
                             reinterpret_cast<uintptr_t>(output) % 32 == 0;
    const int64_t whole = round_up(count);
    for (size_t i = 0; i < program.instructions.size(); ++i) {
      const Instruction& instruction = program.instructions[i];
      if (instruction.opcode == Opcode::kConstant) continue;
      const int value = program.inputs + static_cast<int>(i);
      const bool last = value == program.result();
      Register* to = last && write_there ? reinterpret_cast<Register*>(output) : register_of(value);
      auto operand = [&](size_t k) {
        return instruction.operands[k] < 0 ? nullptr : values_.at[instruction.operands[k]];
      };
      functions_[i](to, operand(0), operand(1), operand(2), whole);
      values_.at[value] = to;
    }
    const Register* result = values_.at[program.result()];
    if (reinterpret_cast<const std::byte*>(result) != output)
      store_elements(result, executable_.output_dtype, count, output);
  }

  const Executable& executable_;
  const Functions<Register>& functions_;
  const KernelArguments& arguments_;
  Register* registers_;
  Values values_;
};

template <typename Register>
KernelFunction bind_as(std::shared_ptr<const Executable> executable) {
  Functions<Register> functions;
  for (const Instruction& instruction : executable->program.instructions)
    functions.push_back(
        instruction.opcode == Opcode::kConstant ? nullptr : block_function<Register>(instruction.opcode));
  return [executable = std::move(executable),
          functions = std::move(functions)](const KernelArguments& arguments) {
    const int64_t blocks = (executable->elements + executable->block - 1) / executable->block;
    const int64_t slices = executable->slices;
    auto run_slices = [&](int64_t first, int64_t last) {
      for (int64_t s = first; s < last; ++s)
        Slice<Register>(*executable, functions, arguments, s)
            .run(blocks * s / slices, blocks * (s + 1) / slices);
    };
    if (blocks > 0) arguments.team.parallel_for(slices, 1, run_slices);
  };
}

}  // namespace

size_t Executable::scratch_bytes() const { return slices * registers * block * size_of(register_dtype); }

void prepare(Executable* executable, const Team& team) {
  MOX_ASSERT(executable->program.values() <= kMaxValues, "a program has at most 64 values");
  executable->block = choose_block(executable->accesses);
  allocate_registers(executable);
  int64_t cost = executable->program.inputs + 1;
  for (const Instruction& instruction : executable->program.instructions)
    cost += relative_cost(instruction.opcode);
  executable->slices = std::clamp<int64_t>(executable->elements * cost / kSliceCost, 1, team.size());
}

KernelFunction make_kernel_function(std::shared_ptr<const Executable> executable) {
  switch (executable->register_dtype) {
    case DType::kFloat32:
      return bind_as<float>(std::move(executable));
    case DType::kInt32:
      return bind_as<int32_t>(std::move(executable));
    case DType::kInt64:
      return bind_as<int64_t>(std::move(executable));
    default:
      MOX_ASSERT(false, "programs compute with float32, int32 or int64");
  }
}

}  // namespace mox::elementwise
