import { PLAN_LIMITS, type Plan } from '../../types/plans.js';
import { TooManyRequestsError } from '../../lib/errors.js';
import { isObject, type JsonObject } from '../../lib/json.js';
import type { SkillChange } from '../../types/skill-change.js';

/** Seconds after which the plan or the skills may have changed. */
const RETRY_AFTER_S = 60;

/** Returns a configuration with one skill changed: `runtime.skills.entries.<name>`. */
export function withSkill(config: JsonObject, change: SkillChange): Record<string, unknown> {
  const runtime = settings(config.runtime);
  const skills = settings(runtime.skills);
  const entries = settings(skills.entries);
  const entry = {
    ...settings(Object.hasOwn(entries, change.name) ? entries[change.name] : undefined),
    ...(change.enabled !== undefined && { enabled: change.enabled }),
    ...(change.config && { config: change.config }),
  };
  return {
    ...config,
    runtime: { ...runtime, skills: { ...skills, entries: { ...entries, [change.name]: entry } } },
  };
}

/** Returns a configuration without the entry of a skill. */
export function withoutSkill(config: JsonObject, name: string): Record<string, unknown> {
  const runtime = settings(config.runtime);
  const skills = settings(runtime.skills);
  const { [name]: _removed, ...entries } = settings(skills.entries);
  return { ...config, runtime: { ...runtime, skills: { ...skills, entries } } };
}

/** Returns a configuration with an entry of every installed skill: OpenClaw loads skills without one. */
export function withInstalled(
  config: JsonObject,
  installed: readonly { readonly name: string }[],
): Record<string, unknown> {
  const there = new Set(skillsIn(config).map(({ name }) => name));
  const missing = installed.filter(({ name }) => !there.has(name));
  return missing.reduce<Record<string, unknown>>(
    (all, { name }) => withSkill(all, { name, enabled: true }),
    { ...config },
  );
}

/** Returns the skills that a configuration names, enabled unless disabled there. */
export function skillsIn(config: JsonObject): { name: string; enabled: boolean }[] {
  const entries = settings(settings(settings(config.runtime).skills).entries);
  return Object.entries(entries)
    .map(([name, entry]) => ({ name, enabled: settings(entry).enabled !== false }))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

/**
 * Refuses more skills than a plan includes; reducing their number is always allowed.
 * @throws TooManyRequestsError `SKILL_LIMIT_REACHED`, with `current` and `limit`
 */
export function checkSkillLimit(
  config: JsonObject,
  { plan, isAdmin }: { readonly plan: Plan; readonly isAdmin: boolean },
  before: JsonObject = {},
): void {
  const { skills: limit } = PLAN_LIMITS[plan];
  if (isAdmin || !exceedsSkills(limit, config, before)) return;
  throw new TooManyRequestsError(
    SKILL_LIMIT_REACHED,
    { max: limit, resetS: RETRY_AFTER_S },
    'SKILL_LIMIT_REACHED',
    { current: enabledSkills(before), limit },
  );
}

export const SKILL_LIMIT_REACHED = 'Skill limit reached for this plan: disable a skill or upgrade';

/** Reports whether a change leads beyond a limit of enabled skills; reducing their number never does. */
export const exceedsSkills = (limit: number, config: JsonObject, before: JsonObject): boolean =>
  enabledSkills(config) > Math.max(limit, enabledSkills(before));

const enabledSkills = (config: JsonObject): number =>
  skillsIn(config).filter(({ enabled }) => enabled).length;

function settings(value: unknown): JsonObject {
  return isObject(value) ? value : {};
}
