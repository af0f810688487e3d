# IR tests of llmc: see README.md of this folder's parent.
import os

import lit.formats

config.name = "llmc"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs"]
config.test_source_root = os.path.dirname(__file__)
config.environment["PATH"] = os.pathsep.join([config.llmc_bin, config.llvm_tools, config.environment["PATH"]])
config.substitutions.append(("%testdata", config.test_data))
config.substitutions.append(("%S/Inputs", os.path.join(config.test_source_root, "Inputs")))
