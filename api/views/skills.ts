import * as z from 'zod';
import type { ListedSkill, WholeSkill } from '../../src/skills/skills.js';

export const MAX_DESCRIPTION = 1_000;
export const MAX_TAGS = 10;
export const MAX_TAG = 32;

/** Name of a published skill, which is also the name of its folder. */
export const publishedName = z
  .string()
  .max(64)
  .regex(/^[a-z0-9]+(?:-[a-z0-9]+)*$/, 'name must be words of a-z and 0-9, joined by "-"');

const visibility = z.enum(['private', 'public']);

export const skillPublication = z.object({
  name: publishedName,
  description: z.string().trim().min(1).max(MAX_DESCRIPTION).optional(),
  content: z.string().min(1).optional().describe('A `SKILL.md` of OpenClaw, at most 40,000 bytes'),
  tags: z.array(z.string().trim().min(1).max(MAX_TAG)).max(MAX_TAGS).optional(),
  visibility: visibility.optional(),
});

const skill = {
  name: z.string(),
  description: z.string(),
  author: z.string().nullable().describe('null if the account has no name'),
  version: z.int(),
  tags: z.array(z.string().meta({ examples: ['writing'] })),
  visibility,
  installs: z.int().describe('Number of agents that have the skill'),
  uses: z.int(),
  createdAt: z.iso.datetime(),
  updatedAt: z.iso.datetime(),
};

const inAgent = {
  installed: z.boolean().optional(),
  installedVersion: z.int().nullable().optional(),
  enabled: z.boolean().optional(),
};

export const skillItem = z.strictObject({ ...skill, ...inAgent }).meta({ id: 'Skill' });

export const wholeSkill = z
  .strictObject({ ...skill, ...inAgent, content: z.string() })
  .meta({ id: 'WholeSkill' });

/** The state of a skill in one agent. */
export interface SkillState {
  readonly installed: boolean;
  readonly installedVersion: number | null;
  readonly enabled: boolean;
}

export function presentSkill({ author, id, own, ...listed }: ListedSkill, state?: SkillState) {
  const { name, description, version, tags, visibility: shown, installs, uses } = listed;
  return {
    ...{ name, description, author: authorOf(author), version, tags: [...tags] },
    ...{ visibility: shown, installs, uses },
    createdAt: listed.createdAt.toISOString(),
    updatedAt: listed.updatedAt.toISOString(),
    ...state,
  };
}

export const presentWhole = (found: WholeSkill, state?: SkillState) => ({
  ...presentSkill(found, state),
  content: found.content,
});

/** An account that signed in without a name has an address in its place, which no other user may learn. */
const authorOf = (name: string): string | null =>
  name.includes('@') || /0x[0-9a-f]{8}/i.test(name) ? null : name;
