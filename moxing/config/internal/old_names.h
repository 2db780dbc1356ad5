// The names that options have in other frameworks.
#pragma once

#include <string>
#include <string_view>

namespace mox::internal {

// What to write instead of an option called `name` elsewhere (num_gpus, ps_hosts, use_fp16, model_dir, lr,
// ...), as a part of a sentence: "here it is '--num_devices': ..."; "" for a name that is not known from
// elsewhere. Sections before it and dashes for underscores count for nothing. `kind` and `prefix` as in
// nearest_option_text.
std::string old_name_text(std::string_view kind, std::string_view prefix, std::string_view name);

}  // namespace mox::internal
