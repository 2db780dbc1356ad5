// What the directories of images of both kinds share: lists compared, and images that are files of one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "moxing/image_sets/internal/encoded_images.h"
#include "moxing/image_sets/internal/set_files.h"

namespace mox::data::internal {

inline constexpr const char* kLabelsFile = "labels.txt";

uint32_t checksum(const std::string& text, uint32_t previous);

std::vector<std::string> only_in(const std::vector<std::string>& some,
                                 const std::vector<std::string>& others);

// Throws DataError if `given`, what a directory has, are not all of the run's classes.
void require_known(const std::string& directory, const std::vector<std::string>& given,
                   const std::vector<std::string>& of_run);

void warn_of_other_files(const std::string& directory, const std::vector<std::string>& others);
void warn_of_lacking(const std::string& directory, const std::vector<std::string>& lacking, size_t classes);

// Images that are files of one directory.
class FilesOfImages : public EncodedImages {
 public:
  explicit FilesOfImages(std::unique_ptr<const SetFiles> files) : files_(std::move(files)) {}
  int64_t size() const override { return files_->size(); }
  std::string locate(int64_t index) const override { return files_->path(index); }
  void will_read(int64_t index) const override { files_->will_read(index); }
  std::string identity() const override;

 protected:
  const SetFiles& files() const { return *files_; }

 private:
  const std::unique_ptr<const SetFiles> files_;
};

}  // namespace mox::data::internal
