import { literal, Op } from 'sequelize';
import type {
  MemberStatus,
  MergeState,
  SwarmStatus,
  SwarmStrategy,
} from '../../../types/swarms.js';
import { ownedThrough } from '../schema/policies.js';
import {
  date,
  index,
  integer,
  key,
  nullable,
  table,
  text,
  timestamp,
  unique,
  withDefault,
} from '../schema/table.js';

const now = () => withDefault(timestamp(), literal('now()'));
const IS_OPEN = { settled_at: null };

/** Tasks that several agents of one owner work on. */
export const swarms = table(
  'swarms',
  {
    id: key(text()),
    userId: text(),
    name: text(),
    task: text(),
    strategy: text<SwarmStrategy>(),
    coordinatorId: text(),
    status: withDefault(text<SwarmStatus>(), 'pending'),
    /** Each retry is a further round; a member receives at most one question per round. */
    round: withDefault(integer(), 1),
    /** The coordinator's turn of the round; null before. */
    merge: nullable(text<MergeState>()),
    result: nullable(text()),
    error: nullable(text()),
    /** Messages between agents of the round: reserved on a UTC day, and sent. */
    reserved: withDefault(integer(), 0),
    reservedOn: nullable(date()),
    sent: withDefault(integer(), 0),
    /** Null as long as a run may have turns in progress. */
    settledAt: nullable(timestamp()),
    dueAt: now(),
    createdAt: now(),
    startedAt: nullable(timestamp()),
    finishedAt: nullable(timestamp()),
  },
  [
    unique('swarms_id_user', ['id', 'user_id']),
    index('swarms_user_created', ['user_id', 'created_at', 'id']),
    index('swarms_user_open', ['user_id'], IS_OPEN),
    index('swarms_due', ['due_at'], IS_OPEN),
    index('swarms_settled', ['settled_at'], { settled_at: { [Op.ne]: null } }),
  ],
  ownedThrough('user_id'),
);

/** Agents of a swarm, with their answers. */
export const swarmMembers = table(
  'swarm_members',
  {
    swarmId: key(text()),
    position: key(integer()),
    userId: text(),
    agentId: text(),
    status: withDefault(text<MemberStatus>(), 'waiting'),
    /** The round of the member's last question. */
    round: withDefault(integer(), 0),
    output: nullable(text()),
    error: nullable(text()),
    startedAt: nullable(timestamp()),
    finishedAt: nullable(timestamp()),
  },
  [
    unique('swarm_members_agent_key', ['swarm_id', 'agent_id']),
    index('swarm_members_agent', ['agent_id']),
    index('swarm_members_user', ['user_id', 'swarm_id', 'position']),
  ],
  ownedThrough('user_id'),
);
