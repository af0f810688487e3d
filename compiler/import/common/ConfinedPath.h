//===- ConfinedPath.h - files that a model names, kept inside its folder -----===//
//
// A model may name other files: shards in a safetensors index, external data of an ONNX file,
// parts of a split GGUF. Such a name must not reach any other file of the machine
// (CVE-2022-25882, CVE-2024-27318 and their kin).
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_IMPORT_COMMON_CONFINEDPATH_H
#define LLMC_IMPORT_COMMON_CONFINEDPATH_H

#include "compiler/import/common/MappedFile.h"

#include <string_view>

namespace llmc {

/// Says whether \p relative is a plain path below a folder, by its text alone: not empty, not
/// absolute, no `..` component, no NUL, newline, backslash, drive letter or URL scheme.
/// \p origin names who wrote it.
llmrt::Status checkRelativePath(std::string_view relative, const std::string &origin);

/// Opens \p relative below the folder \p baseDir. Each component is opened from the descriptor of
/// its folder without following links, so nothing can be swapped between check and use. Symbolic
/// links are followed only as long as they stay below \p baseDir; when \p baseDir is a snapshot
/// of a hub cache (ROOT/snapshots/REVISION beside ROOT/blobs), as long as they stay below ROOT.
llmrt::Result<MappedFile> openConfined(const std::string &baseDir, std::string_view relative,
                                       const std::string &origin);

} // namespace llmc

#endif // LLMC_IMPORT_COMMON_CONFINEDPATH_H
