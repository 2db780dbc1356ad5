// The names that options, and their values, have in other frameworks.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mox::internal {

// What to write instead of an option called `name` elsewhere (num_gpus, ps_hosts, use_fp16, model_dir, lr,
// ...), as a part of a sentence: "here it is '--num_devices': ..."; "" for a name that is not known from
// elsewhere. Sections before it and dashes for underscores count for nothing. `kind` and `prefix`
// as in nearest_option_text.
std::string old_name_text(std::string_view kind, std::string_view prefix, std::string_view name);

// What to write instead of `value`, which is none of `allowed`, for the option `option`, as a part of a
// sentence: "here it is 'bf16': ...", for a value that is known from elsewhere (precision: fp16), is written
// in other letters (Adam), or is a slip of the keyboard; "" for others.
std::string old_value_text(std::string_view option, std::string_view value,
                           const std::vector<std::string>& allowed);

}  // namespace mox::internal
