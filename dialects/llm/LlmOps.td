//===- LlmOps.td - all operations of the llm dialect --------------*- tablegen -*-===//
#ifndef LLMC_DIALECTS_LLM_LLMOPS
#define LLMC_DIALECTS_LLM_LLMOPS

include "dialects/llm/Weights.td"
include "dialects/llm/Embed.td"
include "dialects/llm/Linear.td"
include "dialects/llm/Norm.td"
include "dialects/llm/Rope.td"
include "dialects/llm/Attention.td"
include "dialects/llm/Mlp.td"
include "dialects/llm/Moe.td"
include "dialects/llm/Latent.td"

#endif
