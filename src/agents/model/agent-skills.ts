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
  const count = (of: JsonObject) => skillsIn(of).filter(({ enabled }) => enabled).length;
  const [wanted, current] = [count(config), count(before)];
  if (isAdmin || wanted <= Math.max(limit, current)) return;
  throw new TooManyRequestsError(
    'Skill limit reached for this plan: disable a skill or upgrade',
    { max: limit, resetS: RETRY_AFTER_S },
    'SKILL_LIMIT_REACHED',
    { current, limit },
  );
}

function settings(value: unknown): JsonObject {
  return isObject(value) ? value : {};
}
