# Writes FILES as rows of an array of CudaHeader to OUTPUT.
set(rows "")
foreach(file IN LISTS FILES)
  get_filename_component(name ${file} NAME)
  file(READ ${file} text)
  string(APPEND rows "{\"${name}\", R\"llmc(${text})llmc\"},\n")
endforeach()
file(WRITE ${OUTPUT} "${rows}")
