import { isObject, type JsonObject } from '../../../lib/json.js';
import type { ChatRequest } from '../../completion/completion.js';
import { thinkingSettings, thinksByDefault } from './models.js';

/** The smallest budget that Anthropic accepts, in tokens. */
const MIN_BUDGET = 1_024;

export interface Thinking {
  /** Undefined leaves the model's default. */
  readonly setting: JsonObject | undefined;
  /** True if the model thinks in this turn and accepts its earlier thinking blocks. */
  readonly isOn: boolean;
}

export const WITHOUT_THINKING: Thinking = { setting: undefined, isOn: false };

/**
 * Returns the setting of thinking that the model accepts for this turn. A budget and a forced tool call
 * exclude each other: such a turn has no thinking.
 */
export function toThinking(request: ChatRequest, maxTokens: number): Thinking {
  const { model, thinking } = request;
  const settings = thinkingSettings(model);
  if (!isObject(thinking) || settings === 'none') {
    return { setting: undefined, isOn: thinksByDefault(model) };
  }
  const { type } = thinking;
  if (type === 'disabled' && settings !== 'always') return { setting: { type }, isOn: false };
  const isBudget = settings === 'budget' || (settings === 'any' && type !== 'adaptive');
  if (!isBudget) return { setting: adaptive(thinking), isOn: true };
  const budget = budgetWithin(thinking.budget_tokens, maxTokens);
  if (budget === undefined || isForced(request.tool_choice)) return WITHOUT_THINKING;
  return { setting: { ...thinking, type: 'enabled', budget_tokens: budget }, isOn: true };
}

/** Allows a model to drop thinking that it refuses, since clients change conversations. */
export function withDropping({ setting, isOn }: Thinking): Thinking {
  const binding = { block_binding: { prefix_mismatch_behavior: 'drop_block' } };
  return { setting: { type: 'adaptive', ...setting, ...binding }, isOn };
}

/** Reports whether a tool choice demands a call. */
export const isForced = (choice: unknown): boolean => choice === 'required' || isObject(choice);

function adaptive({ type, display }: JsonObject): JsonObject | undefined {
  if (type === 'disabled') return undefined;
  return { type: 'adaptive', ...(display !== undefined && { display }) };
}

/** Returns a budget below the bound, with room for the answer; undefined if the bound is too small. */
function budgetWithin(wanted: unknown, maxTokens: number): number | undefined {
  const most = Math.max(MIN_BUDGET, Math.floor(maxTokens * 0.75));
  if (most >= maxTokens) return undefined;
  const requested = typeof wanted === 'number' && wanted < maxTokens ? Math.floor(wanted) : most;
  return Math.max(MIN_BUDGET, requested);
}
