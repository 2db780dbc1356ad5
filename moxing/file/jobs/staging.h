// Output on its way to a store: written on this machine, and copied there when it is whole.
#pragma once

#include <string>

namespace mox::file {

class Staging {
 public:
  // `url` is the file that is to be written, or what the names of several begin with. Of a store: a directory
  // is made below `places` (places_directory) for them. Throws InvalidArgument for a malformed name, one that
  // ends in '/' and a directory of the store, NotFound for a bucket that is not there, IoError if the store
  // does not answer or refuses, UnusablePlace where others may rename what is made in `places`.
  Staging(const std::string& url, const std::string& places);
  // Removes what is on this machine, unless send() failed.
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  // Where to write: the path of a local `url`, else a file of its name in a directory that has nothing else.
  const std::string& path() const { return path_; }

  // Copies the file `name` of the store that lies beside `url` to beside path(), if it is there.
  void fetch(const std::string& name) const;

  // Copies what lies beside path() to beside `url`. Call once, last; does nothing for a local one. Throws an
  // IoError that says where the files are still.
  void send();

 private:
  std::string path_, directory_, destination_;  // the last two: of a url in a store
  bool keeps_ = false;
};

}  // namespace mox::file
