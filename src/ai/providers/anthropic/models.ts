/** Matches `claude-opus-4-6` and `claude-opus-4-20250514`; older models are named `claude-3-5-sonnet-…`. */
const GENERATION = /^claude-([a-z]+)-(\d{1,2})(?:-(\d{1,2}))?(?!\d)/;

/** Matches models before Claude 4, with the version. */
const EARLY = /^claude-(?:instant|[123](?:[.-](\d))?)/;

/** Returns the family and version (406 for 4.6) of a model; version 0 for a name that is not Anthropic's. */
function generationOf(model: string): { readonly family: string; readonly version: number } {
  const [, family = '', major = '0', minor = '0'] = GENERATION.exec(model) ?? [];
  return { family, version: Number(major) * 100 + Number(minor) };
}

/** Reports whether a model accepts `temperature`, `top_p` and `top_k`; models since 4.7 refuse them. */
export const takesSampling = (model: string): boolean => generationOf(model).version < 407;

/** Reports whether a conversation may end with the beginning of an answer; models since 4.6 refuse that. */
export const takesPrefill = (model: string): boolean => generationOf(model).version < 406;

/** Returns the most tokens that a model writes; unlimited for a name that is not Anthropic's. */
export function maxOutputOf(model: string): number {
  const early = EARLY.exec(model);
  if (early) return Number(early[1] ?? 0) >= 5 ? 8_192 : 4_096;
  const { family, version } = generationOf(model);
  if (version === 0) return Infinity;
  if (version >= 406) return 128_000;
  return family === 'opus' && version < 405 ? 32_000 : 64_000;
}

/**
 * The settings of thinking that a model accepts:
 * - `none`: it does not think.
 * - `budget`: `enabled` with a budget.
 * - `any`: a budget, or `adaptive`.
 * - `adaptive`: `adaptive`, or `disabled`; a budget is refused.
 * - `always`: `adaptive` only; it refuses forced tool calls too.
 */
export type ThinkingSettings = 'none' | 'budget' | 'any' | 'adaptive' | 'always';

export function thinkingSettings(model: string): ThinkingSettings {
  if (EARLY.test(model)) return model.startsWith('claude-3-7') ? 'budget' : 'none';
  const { family, version } = generationOf(model);
  if (family === 'fable' || family === 'mythos') return 'always';
  if (version >= 505 && family !== 'haiku') return 'always';
  if (version >= 407) return 'adaptive';
  return version === 0 || version === 406 ? 'any' : 'budget';
}

/** Reports whether a model thinks without a setting. */
export const thinksByDefault = (model: string): boolean =>
  thinkingSettings(model) === 'always' || generationOf(model).version >= 500;

/**
 * Returns the condition under which a model accepts its own earlier thinking:
 * - `free`: with any conversation before it.
 * - `bound`: with the same conversation before it; otherwise it drops its thinking, if the request allows that.
 * - `none`: its thinking is left out, because no rule for it is documented.
 */
export function thinkingReplay(model: string): 'free' | 'bound' | 'none' {
  if (generationOf(model).version <= 500) return 'free';
  return thinkingSettings(model) === 'always' ? 'bound' : 'none';
}
