import { randomUUID } from 'node:crypto';
import { Op } from 'sequelize';
import { BadRequestError, ConflictError, NotFoundError } from '../lib/errors.js';
import { recordAudit } from '../platform/audit/audit.js';
import type { Requester } from '../platform/audit/requester.js';
import { violates } from '../platform/database/constraints.js';
import type { Database, Statements, TenantTransaction } from '../platform/database/database.js';
import type { SkillRow } from '../platform/database/models.js';
import { checkSkillText } from './skill-file.js';

export const MAX_SKILLS = 100;
export const MAX_SKILL_VERSIONS = 20;

/** Paths of other endpoints below `/api/skills`. */
const RESERVED: ReadonlySet<string> = new Set(['booking-settlement', 'instant-split']);

export type Visibility = SkillRow['visibility'];

/** A skill as shown to users who may see it. */
export interface ListedSkill {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  /** The name of the author's account. */
  readonly author: string;
  readonly own: boolean;
  readonly version: number;
  readonly tags: readonly string[];
  readonly visibility: Visibility;
  /** Agents that have the skill now. */
  readonly installs: number;
  readonly uses: number;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

export interface WholeSkill extends ListedSkill {
  readonly content: string;
}

export interface SkillFilter {
  readonly q?: string | undefined;
  readonly tag?: string | undefined;
  readonly mine: boolean;
  readonly limit: number;
  readonly before?: readonly [time: string, id: string] | undefined;
}

export interface PublishedSkill {
  readonly name: string;
  readonly description?: string | undefined;
  readonly content?: string | undefined;
  readonly tags?: readonly string[] | undefined;
  readonly visibility?: Visibility | undefined;
}

const FOUND = `
  SELECT id, name, description, author, own, version, tags, visibility, installs, uses,
         created_at AS "createdAt", updated_at AS "updatedAt", content
    FROM find_skills($name, $tag, $q, $mine, $time::timestamptz, $id, $most, $whole)`;

/** Returns the skills that the user may see, newest first, and one more than the limit if there are more. */
export function listSkills(
  db: Statements,
  { before, limit, mine, q, tag }: SkillFilter,
): Promise<ListedSkill[]> {
  const [time = null, id = null] = before ?? [];
  const values = { name: null, tag: tag ?? null, q: q ?? null, mine, time, id, most: limit + 1 };
  return db.query<ListedSkill>(FOUND, { ...values, whole: false });
}

/** Returns the user's own skill of this name, or else the public one. */
export async function findSkill(db: Statements, name: string): Promise<WholeSkill | undefined> {
  const none = { tag: null, q: null, time: null, id: null };
  const values = { ...none, name, mine: false, most: 1, whole: true };
  const [found] = await db.query<WholeSkill>(FOUND, values);
  return found;
}

/** Returns the user's own skill, or the public one. @throws NotFoundError also for others' private ones */
export async function getSkill(db: Statements, name: string): Promise<WholeSkill> {
  const found = await findSkill(db, name);
  if (!found) throw new NotFoundError('Skill not found');
  return found;
}

/** Counts a use of a skill, which may be another user's. */
export async function countUse(database: Database, skillId: string): Promise<void> {
  await database.call({ name: 'count_skill_use', text: 'SELECT count_skill_use($1)' }, [skillId]);
}

export interface Publisher extends Requester {
  readonly isAdmin: boolean;
}

/**
 * Creates a skill or its next version. A change of only the visibility creates no version; administrators withdraw
 * public skills of others, and make withdrawn ones public again.
 * @throws BadRequestError; ConflictError for a taken name, a withdrawn skill or beyond `MAX_SKILLS`
 */
export async function publishSkill(
  database: Database,
  by: Publisher,
  requested: PublishedSkill,
): Promise<WholeSkill> {
  const { name, visibility } = requested;
  if (RESERVED.has(name)) throw nameTaken();
  if (requested.content !== undefined) checkSkillText(name, requested.content);
  try {
    if (!hasText(requested)) return await changeVisibility(database, by, { name, visibility });
    return await changeAsAuthor(by, name, async (db, own) => {
      await (own ? addVersion(db, by, own, requested) : create(db, by, requested));
      return getSkill(db, name);
    });
  } catch (error) {
    if (violates(error, 'skills_public_name_key')) throw nameTaken();
    if (violates(error, 'skills_withdrawn_check')) throw withdrawn();
    throw error;
  }
}

/** Serializes a user's changes, so that versions follow each other and the limit is exact. */
function changeAsAuthor<T>(
  by: Publisher,
  name: string,
  change: (db: TenantTransaction, own: SkillRow | null) => Promise<T>,
): Promise<T> {
  const userId = by.actor;
  return by.tenant.transaction(async (db) => {
    await db.lock(`skills-of:${userId}`);
    return change(db, await db.Skill.findOne({ where: { userId, name } }));
  });
}

const hasText = ({ content, description, tags }: PublishedSkill): boolean =>
  [content, description, tags].some((part) => part !== undefined);

async function create(
  db: TenantTransaction,
  by: Publisher,
  { content, description, name, tags = [], visibility = 'private' }: PublishedSkill,
): Promise<void> {
  if (await findSkill(db, name)) throw nameTaken();
  if (description === undefined) throw new BadRequestError('description is required');
  if (content === undefined) throw new BadRequestError('content is required');
  const userId = by.actor;
  const current = await db.Skill.count({ where: { userId } });
  if (current >= MAX_SKILLS) {
    const facts = { current, limit: MAX_SKILLS };
    throw new ConflictError('Too many skills: change one of yours', 'SKILLS_FULL', facts);
  }
  const skill = { id: randomUUID(), userId, name, version: 1, visibility };
  // Pages of lists begin at times of whole milliseconds, finer than which the database's clock is.
  await db.Skill.create({ ...skill, createdAt: new Date() });
  await db.SkillVersion.create({
    ...{ skillId: skill.id, version: 1, userId },
    ...{ description, tags, content },
  });
  await audit(db, by, skill);
}

async function addVersion(
  db: TenantTransaction,
  by: Publisher,
  own: SkillRow,
  requested: PublishedSkill,
): Promise<void> {
  const { id: skillId, userId } = own;
  const former = await db.SkillVersion.findOne({ where: { skillId, version: own.version } });
  if (!former) throw new TypeError(`skill ${skillId} lacks its version`);
  const version = own.version + 1;
  const {
    content = former.content,
    description = former.description,
    tags = former.tags,
  } = requested;
  const { visibility = own.visibility } = requested;
  await db.SkillVersion.create({ skillId, version, userId, description, tags, content });
  await db.query(
    'DELETE FROM skill_versions WHERE skill_id = $skillId AND version <= $version - $most::integer',
    { skillId, version, most: MAX_SKILL_VERSIONS },
  );
  await db.Skill.update({ version, visibility, updatedAt: new Date() }, { where: { id: skillId } });
  await audit(db, by, { ...own, version, visibility });
}

async function changeVisibility(
  database: Database,
  by: Publisher,
  { name, visibility }: Pick<PublishedSkill, 'name' | 'visibility'>,
): Promise<WholeSkill> {
  if (visibility === undefined) throw new BadRequestError('content is required');
  const changed = await changeAsAuthor(by, name, async (db, own) => {
    if (!own) return undefined;
    await setVisibility(db, by, own, visibility);
    return getSkill(db, name);
  });
  if (changed) return changed;
  if (!by.isAdmin) {
    const shown = await findSkill(by.tenant, name);
    throw shown ? nameTaken() : new BadRequestError('content is required');
  }
  return visibility === 'private' ? withdraw(database, by, name) : restore(database, by, name);
}

/** Makes another author's public skill private until an administrator restores it. */
async function withdraw(database: Database, by: Publisher, name: string): Promise<WholeSkill> {
  const shown = await getSkill(by.tenant, name);
  await database.asPlatform().transaction(async (db) => {
    const skill = await db.Skill.findByPk(shown.id, { lock: true });
    // The author may have made the skill private in between.
    if (skill) await setVisibility(db, by, skill, 'private', { withdrawnAt: new Date() });
  });
  return { ...shown, visibility: 'private' };
}

/** Makes the skill of this name that was withdrawn last public again. */
async function restore(database: Database, by: Publisher, name: string): Promise<WholeSkill> {
  await database.asPlatform().transaction(async (db) => {
    const skill = await db.Skill.findOne({
      where: { name, withdrawnAt: { [Op.ne]: null } },
      order: [['withdrawnAt', 'DESC']],
      lock: true,
    });
    if (skill) await setVisibility(db, by, skill, 'public', { withdrawnAt: null });
  });
  return getSkill(by.tenant, name);
}

async function setVisibility(
  db: TenantTransaction,
  by: Publisher,
  skill: SkillRow,
  visibility: Visibility,
  change: { readonly withdrawnAt?: Date | null } = {},
): Promise<void> {
  if (skill.visibility === visibility && change.withdrawnAt === undefined) return;
  const changed = { ...change, visibility, updatedAt: new Date() };
  await db.Skill.update(changed, { where: { id: skill.id } });
  await audit(db, by, { ...skill, visibility });
}

/** Records the change, without the skill's text. */
const audit = (
  db: TenantTransaction,
  by: Publisher,
  {
    id,
    name,
    userId,
    version,
    visibility,
  }: Omit<SkillRow, 'uses' | 'withdrawnAt' | 'createdAt' | 'updatedAt'>,
): Promise<void> =>
  recordAudit(db, {
    actor: by.actor,
    userId,
    action: 'skill.publish',
    subject: id,
    detail: { name, version, visibility },
    requestId: by.requestId,
  });

const nameTaken = () =>
  new ConflictError('Another author has a skill of this name: choose another', 'SKILL_NAME_TAKEN');

const withdrawn = () =>
  new ConflictError(
    'An administrator withdrew this skill: keep it private, or ask the operator',
    'SKILL_WITHDRAWN',
  );
