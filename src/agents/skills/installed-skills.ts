import { Op } from 'sequelize';
import type {
  Statements,
  TenantDatabase,
  TenantTransaction,
} from '../../platform/database/database.js';
import { ConflictError } from '../../lib/errors.js';
import { getSkill } from '../../skills/skills.js';
import type { AgentRow } from '../../platform/database/models.js';

/** A change of an agent's installed skills. */
export interface SkillInstall {
  readonly name: string;
  /** Null for a removal, as the version and the text. */
  readonly skillId: string | null;
  readonly version: number | null;
  /** The whole `SKILL.md`. */
  readonly content: string | null;
}

export interface InstalledSkill {
  readonly name: string;
  readonly skillId: string | null;
  readonly version: number;
}

/** Stores a change, which takes effect when its operation begins. */
export async function requestInstall(
  db: TenantTransaction,
  agent: Pick<AgentRow, 'id' | 'userId'>,
  operationId: string,
  install: SkillInstall,
): Promise<void> {
  const { id: agentId, userId } = agent;
  await db.AgentSkill.bulkCreate(
    [{ id: operationId, agentId, userId, ...install, state: 'requested' }],
    { ignoreDuplicates: true },
  );
}

export async function forgetInstall(db: TenantTransaction, operationId: string): Promise<void> {
  await db.AgentSkill.destroy({ where: { id: operationId, state: 'requested' } });
}

/** Applies the change of an operation that begins, keeping the previous version until it ends. */
export async function beginInstall(db: TenantTransaction, operationId: string): Promise<void> {
  const where = { id: operationId, state: 'requested' };
  const requested = await db.AgentSkill.findOne({ where, attributes: ['agentId', 'name'] });
  if (!requested) return;
  const { agentId, name } = requested;
  await db.AgentSkill.update({ state: 'previous' }, { where: { agentId, name, state: 'present' } });
  await db.AgentSkill.update({ state: 'present', updatedAt: new Date() }, { where });
}

export async function rollBackInstall(db: TenantTransaction, operationId: string): Promise<void> {
  const where = { id: operationId, state: 'present' };
  const failed = await db.AgentSkill.findOne({ where, attributes: ['agentId', 'name'] });
  if (!failed) return;
  const { agentId, name } = failed;
  await db.AgentSkill.destroy({ where });
  await db.AgentSkill.update({ state: 'present' }, { where: { agentId, name, state: 'previous' } });
}

/** Deletes previous versions, and removed skills, once no rollback can need them. */
export async function settleInstalls(db: TenantTransaction, agentId: string): Promise<void> {
  const ended = [{ state: 'previous' }, { state: 'present', content: null }];
  await db.AgentSkill.destroy({ where: { agentId, [Op.or]: ended } });
}

/** Copies the installed skills of an agent to its clone, whose configuration names them. */
export async function copyInstalls(
  db: Statements,
  { from, to }: { readonly from: string; readonly to: Pick<AgentRow, 'id' | 'userId'> },
): Promise<void> {
  await db.query(
    `INSERT INTO agent_skills (id, agent_id, user_id, name, skill_id, version, content, state)
     SELECT gen_random_uuid()::text, $agentId, $userId, name, skill_id, version, content, 'present'
       FROM agent_skills
      WHERE agent_id = $from AND user_id = $userId AND state = 'present' AND content IS NOT NULL`,
    { from, agentId: to.id, userId: to.userId },
  );
}

export function installedSkills(db: Statements, agentId: string): Promise<InstalledSkill[]> {
  return db.query<InstalledSkill>(
    `SELECT name, skill_id AS "skillId", version FROM agent_skills
      WHERE agent_id = $agentId AND state = 'present' AND content IS NOT NULL ORDER BY name`,
    { agentId },
  );
}

/**
 * Returns an agent's installed skill, even one that the user no longer sees in lists.
 * @throws NotFoundError for a skill that the user may not see; ConflictError for one that is not installed
 */
export async function requireInstalled(
  db: Statements,
  { id }: Pick<AgentRow, 'id'>,
  name: string,
): Promise<InstalledSkill> {
  const found = (await installedSkills(db, id)).find((each) => each.name === name);
  if (found) return found;
  await getSkill(db, name);
  throw new ConflictError('The agent does not have this skill: install it', 'SKILL_NOT_INSTALLED');
}

/** Returns the texts of an agent's skills by their names. */
export async function skillTexts(
  tenant: TenantDatabase,
  agentId: string,
): Promise<Record<string, string>> {
  const rows = await tenant.query<{ name: string; content: string }>(
    `SELECT name, content FROM agent_skills
      WHERE agent_id = $agentId AND state = 'present' AND content IS NOT NULL ORDER BY name`,
    { agentId },
  );
  return Object.fromEntries(rows.map(({ name, content }) => [name, content]));
}
