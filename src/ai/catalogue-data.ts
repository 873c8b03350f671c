import type { Plan } from '../accounts/plans.js';
import type { ProviderName } from './provider-names.js';

/** A model, and what the providers that serve it call it. */
export interface CatalogueModel {
  readonly family: string;
  readonly name: string;
  readonly description: string;
  readonly tags: readonly string[];
  /** The lowest plan whose subscribers may ask for it; those above may too. */
  readonly plan: Plan;
  /** US dollars for a million tokens; at most six decimals. */
  readonly inputCost: number;
  readonly outputCost: number;
  /** Tokens. */
  readonly contextWindow: number;
  readonly maxOutput: number;
  /** Where rates and sizes are from, and when they were looked up there. */
  readonly source: string;
  readonly asOf: string;
  readonly servedBy: Partial<Readonly<Record<ProviderName, string>>>;
}

/** Published by the LiteLLM project (model_prices_and_context_window, 1.106.2). */
const LITELLM = 'litellm 1.106.2';

/**
 * The models on offer. OpenRouter passes its makers' rates on without a surcharge for tokens, so
 * that one rate holds for all who serve a model. `npm run models:stale` lists what is due.
 */
export const CATALOGUE: readonly CatalogueModel[] = [
  {
    family: 'gpt-6-luna',
    name: 'GPT-6 Luna',
    description: 'Small and quick, for everyday tasks',
    tags: ['general', 'fast', 'creative'],
    plan: 'label',
    inputCost: 0.1,
    outputCost: 0.5,
    contextWindow: 922_000,
    maxOutput: 128_000,
    source: 'https://developers.openai.com/api/docs/pricing',
    asOf: '2026-11-21',
    servedBy: { openai: 'gpt-6-luna', openrouter: 'openai/gpt-6-luna' },
  },
  {
    family: 'gemini-2.5-flash',
    name: 'Gemini 2.5 Flash',
    description: 'Quick, with a long context',
    tags: ['general', 'fast', 'creative'],
    plan: 'label',
    inputCost: 0.3,
    outputCost: 2.5,
    contextWindow: 1_048_576,
    maxOutput: 65_536,
    source: 'https://ai.google.dev/gemini-api/docs/pricing',
    asOf: '2026-11-21',
    servedBy: { gemini: 'gemini-2.5-flash', openrouter: 'google/gemini-2.5-flash' },
  },
  {
    family: 'gpt-oss-120b',
    name: 'GPT-OSS 120B',
    description: 'Open weights, thinks before it answers',
    tags: ['general', 'reasoning', 'coding', 'fast'],
    plan: 'label',
    inputCost: 0.15,
    outputCost: 0.6,
    contextWindow: 131_072,
    maxOutput: 65_536,
    source: LITELLM,
    asOf: '2026-11-21',
    servedBy: { groq: 'openai/gpt-oss-120b', openrouter: 'openai/gpt-oss-120b' },
  },
  {
    family: 'claude-haiku-5-5',
    name: 'Claude Haiku 5.5',
    description: 'Quick, good with tools',
    tags: ['general', 'fast', 'coding'],
    plan: 'solo',
    inputCost: 0.1,
    outputCost: 0.5,
    contextWindow: 1_000_000,
    maxOutput: 128_000,
    source: 'https://platform.claude.com/docs/en/models/haiku-5-5/overview',
    asOf: '2026-11-21',
    servedBy: { anthropic: 'claude-haiku-5-5', openrouter: 'anthropic/claude-haiku-5.5' },
  },
  {
    family: 'gemini-3.8-flash',
    name: 'Gemini 3.8 Flash',
    description: 'Balanced, with a long context',
    tags: ['general', 'creative'],
    plan: 'solo',
    inputCost: 0.75,
    outputCost: 3.75,
    contextWindow: 1_048_576,
    maxOutput: 65_536,
    source: 'https://ai.google.dev/gemini-api/docs/pricing',
    asOf: '2026-11-21',
    servedBy: { gemini: 'gemini-3.8-flash', openrouter: 'google/gemini-3.8-flash' },
  },
  {
    family: 'claude-sonnet-5-5',
    name: 'Claude Sonnet 5.5',
    description: 'For code and long tasks with tools',
    tags: ['coding', 'creative', 'reasoning'],
    plan: 'collective',
    inputCost: 2,
    outputCost: 10,
    contextWindow: 1_000_000,
    maxOutput: 128_000,
    source: 'https://platform.claude.com/docs/en/about-claude/pricing',
    asOf: '2026-11-21',
    servedBy: { anthropic: 'claude-sonnet-5-5', openrouter: 'anthropic/claude-sonnet-5.5' },
  },
  {
    family: 'gpt-6.1-sol',
    name: 'GPT-6.1 Sol',
    description: 'For hard questions and code',
    tags: ['reasoning', 'coding'],
    plan: 'collective',
    inputCost: 2,
    outputCost: 10,
    contextWindow: 922_000,
    maxOutput: 128_000,
    source: 'https://developers.openai.com/api/docs/pricing',
    asOf: '2026-11-21',
    servedBy: { openai: 'gpt-6.1-sol', openrouter: 'openai/gpt-6.1-sol' },
  },
  {
    family: 'claude-opus-5-5',
    name: 'Claude Opus 5.5',
    description: 'For the hardest tasks',
    tags: ['reasoning', 'coding'],
    plan: 'network',
    inputCost: 4,
    outputCost: 20,
    contextWindow: 1_000_000,
    maxOutput: 128_000,
    source: 'https://platform.claude.com/docs/en/about-claude/pricing',
    asOf: '2026-11-21',
    servedBy: { anthropic: 'claude-opus-5-5', openrouter: 'anthropic/claude-opus-5.5' },
  },
  {
    family: 'claude-opus-4-6',
    name: 'Claude Opus 4.6',
    description: 'The default of agents',
    tags: ['reasoning', 'coding'],
    plan: 'network',
    inputCost: 5,
    outputCost: 25,
    contextWindow: 1_000_000,
    maxOutput: 128_000,
    source: 'https://platform.claude.com/docs/en/about-claude/pricing',
    asOf: '2026-11-21',
    servedBy: { anthropic: 'claude-opus-4-6', openrouter: 'anthropic/claude-opus-4.6' },
  },
  {
    family: 'gpt-4',
    name: 'GPT-4',
    description: 'Older; agents may name it',
    tags: ['general'],
    plan: 'network',
    inputCost: 30,
    outputCost: 60,
    contextWindow: 8_192,
    maxOutput: 4_096,
    source: LITELLM,
    asOf: '2026-11-21',
    servedBy: { openai: 'gpt-4', openrouter: 'openai/gpt-4' },
  },
  {
    family: 'gpt-oss-20b',
    name: 'GPT-OSS 20B',
    description: 'Open weights, small',
    tags: ['general', 'fast'],
    plan: 'network',
    inputCost: 0.075,
    outputCost: 0.3,
    contextWindow: 131_072,
    maxOutput: 65_536,
    source: LITELLM,
    asOf: '2026-11-21',
    servedBy: { groq: 'openai/gpt-oss-20b', openrouter: 'openai/gpt-oss-20b' },
  },
  {
    family: 'minimax-m3',
    name: 'MiniMax M3',
    description: 'Long context',
    tags: ['general', 'creative'],
    plan: 'network',
    inputCost: 0.3,
    outputCost: 1.2,
    contextWindow: 1_000_000,
    maxOutput: 128_000,
    source: LITELLM,
    asOf: '2026-11-21',
    servedBy: { minimax: 'MiniMax-M3', openrouter: 'minimax/minimax-m3' },
  },
  {
    family: 'minimax-m2.5',
    name: 'MiniMax M2.5',
    description: 'Long context',
    tags: ['general'],
    plan: 'network',
    inputCost: 0.3,
    outputCost: 1.2,
    contextWindow: 1_000_000,
    maxOutput: 8_192,
    source: LITELLM,
    asOf: '2026-11-21',
    servedBy: { minimax: 'MiniMax-M2.5', openrouter: 'minimax/minimax-m2.5' },
  },
];
