# Chat templates; included by CMakeLists.txt. The published templates and what Jinja makes of them
# are unpacked once into the build folder.
set(chat_archive ${PROJECT_SOURCE_DIR}/test/data/templates.tar.xz)
set(chat_unpacked ${CMAKE_CURRENT_BINARY_DIR}/chat-data)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${chat_archive})
if(NOT EXISTS ${chat_unpacked}/stamp OR ${chat_archive} IS_NEWER_THAN ${chat_unpacked}/stamp)
  file(ARCHIVE_EXTRACT INPUT ${chat_archive} DESTINATION ${chat_unpacked})
  file(TOUCH ${chat_unpacked}/stamp)
endif()

llmc_unit_test(text_chat_template LIBS llmrt_chat SRCS
  ApplyTemplateTest.cpp
  PublishedTemplateTest.cpp
  TemplateExpressionTest.cpp
  TemplateLimitsTest.cpp
  TemplateMutationTest.cpp
  TemplateTimeTest.cpp)
target_compile_definitions(text_chat_template PRIVATE LLMRT_TEMPLATES="${chat_unpacked}/templates")
