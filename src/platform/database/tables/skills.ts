import { literal } from 'sequelize';
import { ownedThrough } from '../schema/policies.js';
import {
  index,
  integer,
  key,
  nullable,
  table,
  text,
  texts,
  timestamp,
  unique,
  withDefault,
} from '../schema/table.js';

const IS_PUBLIC = { visibility: 'public' };
const IS_PRESENT = { state: 'present' };

const now = () => withDefault(timestamp(), literal('now()'));

/** Skills that users publish, for themselves or for all. */
export const Skill = table(
  'skills',
  {
    id: key(text()),
    userId: text(),
    name: text(),
    /** The version that is listed and installed. */
    version: integer(),
    visibility: text<'private' | 'public'>(),
    uses: withDefault(integer(), 0),
    /** Set by an administrator; the skill is private then. */
    withdrawnAt: nullable(timestamp()),
    createdAt: now(),
    updatedAt: now(),
  },
  [
    unique('skills_id_user_key', ['id', 'user_id']),
    unique('skills_user_name_key', ['user_id', 'name']),
    unique('skills_public_name_key', ['name'], IS_PUBLIC),
    index('skills_user_created', ['user_id', 'created_at', 'id']),
    index('skills_public_created', ['created_at', 'id'], IS_PUBLIC),
  ],
  ownedThrough('user_id'),
);

/** The last versions of skills. */
export const SkillVersion = table(
  'skill_versions',
  {
    skillId: key(text()),
    version: key(integer()),
    userId: text(),
    description: text(),
    tags: texts(),
    content: text(),
    createdAt: now(),
  },
  [
    index('skill_versions_user', ['user_id', 'skill_id', 'version']),
    index('skill_versions_created', ['created_at']),
  ],
  ownedThrough('user_id'),
);

/** The skills of agents. An installed text is a copy, which stays when the author changes the skill. */
export const AgentSkill = table(
  'agent_skills',
  {
    /** The operation that introduces this version, or another unique id for a copy in a clone. */
    id: key(text()),
    agentId: text(),
    userId: text(),
    name: text(),
    /** Null once the author's account is deleted, and for a removal. */
    skillId: nullable(text()),
    /** Null, as the text, for a removal. */
    version: nullable(integer()),
    content: nullable(text()),
    /** `present` once the operation has begun, which makes the replaced version `previous` until its end. */
    state: text<'requested' | 'present' | 'previous'>(),
    updatedAt: now(),
  },
  [
    index('agent_skills_agent', ['agent_id']),
    index('agent_skills_user', ['user_id', 'id']),
    index('agent_skills_skill', ['skill_id'], IS_PRESENT),
    unique('agent_skills_present_key', ['agent_id', 'name'], IS_PRESENT),
  ],
  ownedThrough('user_id'),
);
