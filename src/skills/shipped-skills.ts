import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual } from 'node:util';
import type { Logger } from 'pino';
import { ConflictError } from '../lib/errors.js';
import type { Database } from '../platform/database/database.js';
import { OPERATOR_USER_ID } from '../types/operator-user.js';
import { readSkill } from './skill-file.js';
import { publishSkill, type PublishedSkill } from './skills.js';

/** The skills of the folder `skills` of the repository, which every user can install. */
export const SHIPPED_SKILLS = ['daily-brief', 'decision-log', 'meeting-notes'] as const;

/**
 * Publishes the shipped skills as the operator's, and their next version after a release that changes them. A
 * name that a user has published already stays the user's.
 */
export async function publishShippedSkills(database: Database, log: Logger): Promise<void> {
  const tenant = database.asUser(OPERATOR_USER_ID);
  const by = {
    ...{ actor: OPERATOR_USER_ID, isAdmin: false, tenant },
    ...{ requestId: 'shipped-skills', idempotencyId: 'shipped-skills' },
  };
  for (const skill of shippedSkills()) {
    try {
      await tenant.transaction(async (db) => {
        // Held while another process publishes the same version.
        await db.lock('shipped-skills');
        const there = await db.Skill.findOne({
          where: { userId: OPERATOR_USER_ID, name: skill.name },
        });
        const version =
          there &&
          (await db.SkillVersion.findOne({ where: { skillId: there.id, version: there.version } }));
        if (version && isSame(version, skill)) return;
        // The visibility of a withdrawn skill stays.
        await publishSkill(database, by, there ? { ...skill, visibility: undefined } : skill);
      });
    } catch (error) {
      if (!(error instanceof ConflictError)) throw error;
      log.warn(
        { skill: skill.name },
        'a user has a skill of this name: the shipped one is left out',
      );
    }
  }
}

type ShippedSkill = PublishedSkill & { readonly description: string; readonly content: string };

/** Reads the shipped skills. */
export function shippedSkills(): ShippedSkill[] {
  return SHIPPED_SKILLS.map((name) => {
    const content = readFileSync(path.join(shippedFolder(), name, 'SKILL.md'), 'utf8');
    const { description, tags } = Object.fromEntries(readSkill(content).fields);
    if (typeof description !== 'string' || typeof tags !== 'string') {
      throw new TypeError(`the shipped skill ${name} lacks a description or tags`);
    }
    return { name, description, content, tags: tags.split(', '), visibility: 'public' };
  });
}

function isSame(
  there: {
    readonly content: string;
    readonly description: string;
    readonly tags: readonly string[];
  },
  { content, description, tags }: PublishedSkill,
): boolean {
  return (
    there.content === content &&
    there.description === description &&
    isDeepStrictEqual(there.tags, tags)
  );
}

/** Returns the folder: at the top of the repository, and of `dist` for built programs and their chunks. */
function shippedFolder(): string {
  let folder = path.dirname(fileURLToPath(import.meta.url));
  for (;;) {
    const found = path.join(folder, 'skills');
    const above = path.dirname(folder);
    if (existsSync(path.join(found, SHIPPED_SKILLS[0], 'SKILL.md')) || above === folder)
      return found;
    folder = above;
  }
}
