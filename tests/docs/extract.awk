# awk -v out=FOLDER -f extract.awk PAGE.md: writes the marked code blocks of a page into FOLDER, an existing folder.
#
#   ```cpp file=NAME.cc     a program (or, without main, a part of one): FOLDER/NAME.cc
#   ```yaml file=NAME.yaml  a file that the page's commands use: FOLDER/NAME.yaml (any language, any NAME)
#   ```sh run               commands that the test runs: FOLDER/steps/01.sh, 02.sh, ... in the order of the page
#   ```text output          what the commands before it print: FOLDER/steps/NN.expected
#
# Blocks of one file name are joined, so a page can explain a program piece by piece. A block inside an HTML comment
# counts, too: it does not show. C++ that is not marked is an error: nobody would know when it stops being true.

function fail(text) {
  printf "%s:%d: %s\n", FILENAME, FNR, text > "/dev/stderr"
  failed = 1
  exit 1
}

!inside && /^```/ {
  inside = 1
  started = FNR
  target = ""
  info = substr($0, 4)
  count = split(info, word, " ")
  if (count >= 2 && word[2] ~ /^file=[A-Za-z0-9_]+(\.[a-z]+)+$/) {
    target = out "/" substr(word[2], 6)
  } else if (word[1] == "sh" && word[2] == "run") {
    target = sprintf("%s/steps/%02d.sh", out, ++steps)
    system("mkdir -p " out "/steps")
  } else if (word[2] == "output") {
    if (!steps) fail("an output block needs commands before it (```sh run)")
    target = sprintf("%s/steps/%02d.expected", out, steps)
  } else if (count >= 2) {
    fail("cannot understand the block \"" info "\"; there are file=NAME.EXTENSION, run (sh) and output (text)")
  } else if (word[1] == "cpp") {
    fail("C++ without file=NAME.cc is compiled by nobody")
  }
  next
}
inside && /^```[ \t]*$/ {
  inside = 0
  if (target != "") close(target)
  next
}
inside && target != "" { print >> target }

END {
  if (!failed && inside) {
    printf "%s:%d: this block does not end\n", FILENAME, started > "/dev/stderr"
    exit 1
  }
}
