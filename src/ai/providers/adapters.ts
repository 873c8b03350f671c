import type { ProviderName } from '../completion/provider-names.js';
import type { ProviderAdapter } from './shared/adapter.js';
import { anthropic } from './anthropic/anthropic.js';
import { gemini } from './gemini/gemini.js';
import { openAiCompatible } from './openai/openai-compatible.js';

const ADAPTERS: Readonly<Record<ProviderName, ProviderAdapter>> = {
  openrouter: openAiCompatible('openrouter'),
  gemini,
  groq: openAiCompatible('groq'),
  anthropic,
  openai: openAiCompatible('openai'),
  minimax: openAiCompatible('minimax'),
};

export function adapterOf(name: ProviderName): ProviderAdapter {
  return ADAPTERS[name];
}
