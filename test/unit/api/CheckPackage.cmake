cmake_minimum_required(VERSION 3.25)
# Installs the runtime to a folder, moves that, and builds the examples against it from outside.
function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE failed OUTPUT_VARIABLE out ERROR_VARIABLE out)
  if(failed)
    message(FATAL_ERROR "${ARGV}:\n${out}")
  endif()
endfunction()
file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/installed --component llmrt)
file(RENAME ${WORK}/installed ${WORK}/prefix) # an installed tree may be moved
file(COPY ${EXAMPLES} DESTINATION ${WORK})
run(${CMAKE_COMMAND} -G ${GENERATOR} -S ${WORK}/examples -B ${WORK}/build -DCMAKE_PREFIX_PATH=${WORK}/prefix
    -DCMAKE_C_COMPILER=${C_COMPILER} -DCMAKE_CXX_COMPILER=${CXX_COMPILER})
run(${CMAKE_COMMAND} --build ${WORK}/build)
# Wrong usage is 2: the programs start, so they found the library.
foreach(program example_generate example_chat)
  execute_process(COMMAND ${WORK}/build/${program} RESULT_VARIABLE status ERROR_VARIABLE message)
  if(NOT status EQUAL 2 OR NOT message MATCHES "usage:")
    message(FATAL_ERROR "${program}: exit ${status}: ${message}")
  endif()
endforeach()
file(GLOB_RECURSE pc ${WORK}/prefix/*/llmrt.pc)
get_filename_component(pcdir ${pc} DIRECTORY)
find_program(PKG_CONFIG pkg-config REQUIRED)
execute_process(COMMAND ${CMAKE_COMMAND} -E env PKG_CONFIG_PATH=${pcdir} ${PKG_CONFIG} --cflags --libs llmrt
  OUTPUT_VARIABLE flags RESULT_VARIABLE failed OUTPUT_STRIP_TRAILING_WHITESPACE)
if(failed)
  message(FATAL_ERROR "pkg-config doesn't find llmrt")
endif()
separate_arguments(flags)
run(${C_COMPILER} -std=c11 ${WORK}/examples/c/generate.c ${flags} -o ${WORK}/generate)
# The Python module finds the library of its own installation.
find_program(PYTHON python3 REQUIRED)
run(${CMAKE_COMMAND} -E env --unset=LLMRT_LIBRARY PYTHONPATH=${WORK}/prefix/share/llmrt/python PYTHONDONTWRITEBYTECODE=1
    ${PYTHON} -c "import llmrt; assert llmrt._library._name.startswith('${WORK}/prefix'), llmrt._library._name")
