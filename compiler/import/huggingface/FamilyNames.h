//===- FamilyNames.h - what transformers calls the tensors of a family -------------===//
#ifndef LLMC_IMPORT_HUGGINGFACE_FAMILYNAMES_H
#define LLMC_IMPORT_HUGGINGFACE_FAMILYNAMES_H

#include "compiler/import/decoder/DecoderNames.h"

#include <vector>

namespace llmc {

/// The names of \p modelType's ForCausalLM class.
DecoderNames familyNames(const std::string &modelType);

/// What stands before every name but the head's ("model.", "transformer."): the weights of some
/// families are published without it.
std::string familyPrefix(const std::string &modelType);

/// Endings of buffers that older versions of transformers saved and whose values follow from the
/// configuration: rotary frequencies, causal masks.
const std::vector<std::string> &bufferEndings();

} // namespace llmc

#endif // LLMC_IMPORT_HUGGINGFACE_FAMILYNAMES_H
