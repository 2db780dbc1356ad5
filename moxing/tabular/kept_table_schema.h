// The schema of a table in the checkpoints of a run.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "moxing/hooks/hook.h"
#include "moxing/model/mode_keys.h"
#include "moxing/tabular/table_schema.h"

namespace mox {

// Keeps `schema` in every checkpoint of a training. A run that is continued with another one throws
// FailedPrecondition before its first step: what it has learnt belongs to the other features.
std::shared_ptr<Hook> table_schema_hook(TableSchema schema);

// That of a checkpoint, or of the latest of a log_dir. Throws NotFound if there is none, or none in it;
// DataError for a damaged one.
TableSchema read_table_schema(const std::string& checkpoint);

// The schema that a run is to use: of the checkpoint that mox::run starts from with these settings (a
// training prefers log_dir's, the other modes checkpoint_path's), nothing if a training begins anew. Both are
// paths of this machine, as log_dir_of_run and checkpoint_path_of_run give them. Of a job rank 0 reads, and
// all ranks get it: all call this. Throws as read_table_schema, ConfigError where EVAL or PREDICT have no
// checkpoint, and InvalidArgument for a URL.
std::optional<TableSchema> kept_table_schema(ModeKeys mode, const std::string& log_dir,
                                             const std::string& checkpoint_path);

}  // namespace mox
