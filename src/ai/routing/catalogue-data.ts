import type { Plan } from '../../types/plans.js';
import type { ProviderName } from '../completion/provider-names.js';

/** A model, with each provider's name for it. */
export interface CatalogueModel {
  readonly family: string;
  readonly name: string;
  readonly description: string;
  readonly tags: readonly string[];
  /** The lowest plan that includes the model; higher plans include it too. */
  readonly plan: Plan;
  /** US dollars per million tokens, with at most six decimals. */
  readonly inputCost: number;
  readonly outputCost: number;
  /** Rates of input that comes from the prompt cache, and of input that is written to it, if they differ. */
  readonly cacheReadCost?: number;
  readonly cacheWriteCost?: number;
  /** Tokens. */
  readonly contextWindow: number;
  readonly maxOutput: number;
  /** Source of rates and sizes, with the date on which they were read. */
  readonly source: string;
  readonly asOf: string;
  /** Source of the cache rates. */
  readonly cacheSource?: string;
  readonly servedBy: Partial<Readonly<Record<ProviderName, string>>>;
}

const OPENAI = lookedUp('https://developers.openai.com/api/docs/pricing', '2026-11-21');
const GOOGLE = lookedUp('https://ai.google.dev/gemini-api/docs/pricing', '2026-11-21');
const ANTHROPIC = lookedUp(
  'https://platform.claude.com/docs/en/about-claude/pricing',
  '2026-11-21',
);
/** Published by the LiteLLM project (model_prices_and_context_window). */
const LITELLM = lookedUp('litellm 1.106.2', '2026-11-21');

/**
 * OpenRouter charges the makers' rates without a surcharge, so one rate applies to all providers of a model.
 * `npm run models:stale` lists outdated entries.
 */
export const CATALOGUE: readonly CatalogueModel[] = [
  {
    family: 'gpt-6-luna',
    name: 'GPT-6 Luna',
    description: 'Small and fast, for everyday tasks',
    tags: ['general', 'fast', 'creative'],
    plan: 'label',
    ...dollars({ input: 0.1, output: 0.5 }),
    ...cached({ read: 0.01, write: 0.125 }),
    ...tokens({ context: 922_000, output: 128_000 }),
    ...OPENAI,
    servedBy: { openai: 'gpt-6-luna', openrouter: 'openai/gpt-6-luna' },
  },
  {
    family: 'gemini-2.5-flash',
    name: 'Gemini 2.5 Flash',
    description: 'Fast, with a long context',
    tags: ['general', 'fast', 'creative'],
    plan: 'label',
    ...dollars({ input: 0.3, output: 2.5 }),
    ...cached({ read: 0.03 }),
    ...tokens({ context: 1_048_576, output: 65_536 }),
    ...GOOGLE,
    servedBy: { gemini: 'gemini-2.5-flash', openrouter: 'google/gemini-2.5-flash' },
  },
  {
    family: 'gpt-oss-120b',
    name: 'GPT-OSS 120B',
    description: 'Open weights, reasons before it answers',
    tags: ['general', 'reasoning', 'coding', 'fast'],
    plan: 'label',
    ...dollars({ input: 0.15, output: 0.6 }),
    ...cached({ read: 0.075 }),
    ...tokens({ context: 131_072, output: 65_536 }),
    ...LITELLM,
    servedBy: { groq: 'openai/gpt-oss-120b', openrouter: 'openai/gpt-oss-120b' },
  },
  {
    family: 'claude-haiku-5-5',
    name: 'Claude Haiku 5.5',
    description: 'Fast, good with tools',
    tags: ['general', 'fast', 'coding'],
    plan: 'solo',
    ...dollars({ input: 0.1, output: 0.5 }),
    ...cached({ read: 0.01, write: 0.125 }),
    ...tokens({ context: 1_000_000, output: 128_000 }),
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
    ...dollars({ input: 0.75, output: 3.75 }),
    ...cached({ read: 0.075 }),
    ...tokens({ context: 1_048_576, output: 65_536 }),
    ...GOOGLE,
    servedBy: { gemini: 'gemini-3.8-flash', openrouter: 'google/gemini-3.8-flash' },
  },
  {
    family: 'claude-sonnet-5-5',
    name: 'Claude Sonnet 5.5',
    description: 'For code and long tasks with tools',
    tags: ['coding', 'creative', 'reasoning'],
    plan: 'collective',
    ...dollars({ input: 2, output: 10 }),
    ...cached({ read: 0.1, write: 2.5 }),
    ...tokens({ context: 1_000_000, output: 128_000 }),
    ...ANTHROPIC,
    servedBy: { anthropic: 'claude-sonnet-5-5', openrouter: 'anthropic/claude-sonnet-5.5' },
  },
  {
    family: 'gpt-6.1-sol',
    name: 'GPT-6.1 Sol',
    description: 'For hard questions and code',
    tags: ['reasoning', 'coding'],
    plan: 'collective',
    ...dollars({ input: 2, output: 10 }),
    ...cached({ read: 0.1, write: 2.5 }),
    ...tokens({ context: 922_000, output: 128_000 }),
    ...OPENAI,
    servedBy: { openai: 'gpt-6.1-sol', openrouter: 'openai/gpt-6.1-sol' },
  },
  {
    family: 'claude-opus-5-5',
    name: 'Claude Opus 5.5',
    description: 'For the hardest tasks',
    tags: ['reasoning', 'coding'],
    plan: 'network',
    ...dollars({ input: 4, output: 20 }),
    ...cached({ read: 0.2, write: 5 }),
    ...tokens({ context: 1_000_000, output: 128_000 }),
    ...ANTHROPIC,
    servedBy: { anthropic: 'claude-opus-5-5', openrouter: 'anthropic/claude-opus-5.5' },
  },
  {
    family: 'claude-opus-4-6',
    name: 'Claude Opus 4.6',
    description: 'The default model of agents',
    tags: ['reasoning', 'coding'],
    plan: 'network',
    ...dollars({ input: 5, output: 25 }),
    ...cached({ read: 0.5, write: 6.25 }),
    ...tokens({ context: 1_000_000, output: 128_000 }),
    ...ANTHROPIC,
    servedBy: { anthropic: 'claude-opus-4-6', openrouter: 'anthropic/claude-opus-4.6' },
  },
  {
    family: 'gpt-4',
    name: 'GPT-4',
    description: 'Older model, for agents that name it',
    tags: ['general'],
    plan: 'network',
    ...dollars({ input: 30, output: 60 }),
    ...tokens({ context: 8_192, output: 4_096 }),
    ...LITELLM,
    servedBy: { openai: 'gpt-4', openrouter: 'openai/gpt-4' },
  },
  {
    family: 'gpt-oss-20b',
    name: 'GPT-OSS 20B',
    description: 'Open weights, small',
    tags: ['general', 'fast'],
    plan: 'network',
    ...dollars({ input: 0.075, output: 0.3 }),
    ...cached({ read: 0.0375 }),
    ...tokens({ context: 131_072, output: 65_536 }),
    ...LITELLM,
    servedBy: { groq: 'openai/gpt-oss-20b', openrouter: 'openai/gpt-oss-20b' },
  },
  {
    family: 'minimax-m3',
    name: 'MiniMax M3',
    description: 'Long context',
    tags: ['general', 'creative'],
    plan: 'network',
    ...dollars({ input: 0.3, output: 1.2 }),
    ...cached({ read: 0.06 }),
    ...tokens({ context: 1_000_000, output: 128_000 }),
    ...LITELLM,
    servedBy: { minimax: 'MiniMax-M3', openrouter: 'minimax/minimax-m3' },
  },
  {
    family: 'minimax-m2.5',
    name: 'MiniMax M2.5',
    description: 'Long context',
    tags: ['general'],
    plan: 'network',
    ...dollars({ input: 0.3, output: 1.2 }),
    ...cached({ read: 0.03, write: 0.375 }),
    ...tokens({ context: 1_000_000, output: 8_192 }),
    ...LITELLM,
    servedBy: { minimax: 'MiniMax-M2.5', openrouter: 'minimax/minimax-m2.5' },
  },
];

function lookedUp(source: string, asOf: string) {
  return { source, asOf };
}

function dollars({ input, output }: { readonly input: number; readonly output: number }) {
  return { inputCost: input, outputCost: output };
}

/** Returns cache rates, all of them published by the LiteLLM project. */
function cached({ read, write }: { readonly read: number; readonly write?: number }) {
  return {
    cacheReadCost: read,
    ...(write !== undefined && { cacheWriteCost: write }),
    cacheSource: 'litellm 1.106.2, 2026-11-27',
  };
}

function tokens({ context, output }: { readonly context: number; readonly output: number }) {
  return { contextWindow: context, maxOutput: output };
}
