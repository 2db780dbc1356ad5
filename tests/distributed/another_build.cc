// What makes distributed_program_of_another_build another build of the same program.
namespace mox {

extern const char kAnotherBuild[];
const char kAnotherBuild[] = "another build";

}  // namespace mox
