import * as z from 'zod';
import type { Swarm } from '../../src/swarms/swarms.js';
import { visibleName } from '../../src/lib/visible-name.js';
import {
  MEMBER_STATUSES,
  SWARM_ACTIONS,
  SWARM_STATUSES,
  SWARM_STRATEGIES,
} from '../../src/types/swarms.js';

const agentId = z.string().min(1).max(64);

export const swarmBody = z.strictObject({
  name: visibleName(100),
  task: z.string().min(1).max(16_000),
  agentIds: z
    .array(agentId)
    .min(2)
    .max(20)
    .refine((ids) => new Set(ids).size === ids.length, {
      error: 'agentIds must name each agent once',
    }),
  strategy: z.enum(SWARM_STRATEGIES).default('parallel'),
  coordinatorId: agentId.optional(),
});

export const swarmChange = z.strictObject({
  id: z.string().max(64),
  action: z.enum(SWARM_ACTIONS),
});

const times = { startedAt: z.iso.datetime().nullable(), finishedAt: z.iso.datetime().nullable() };

export const swarmItem = z
  .strictObject({
    id: z.string(),
    name: z.string(),
    strategy: z.enum(SWARM_STRATEGIES),
    coordinatorId: z.string(),
    status: z.enum(SWARM_STATUSES),
    progress: z.strictObject({ done: z.int(), total: z.int() }),
    error: z.string().nullable(),
    createdAt: z.iso.datetime(),
    ...times,
  })
  .meta({ id: 'SwarmItem' });

export const swarmDetail = swarmItem
  .extend({
    task: z.string().meta({ examples: ['Plan a tour'] }),
    members: z.array(
      z.strictObject({
        agentId: z.string(),
        status: z.enum(MEMBER_STATUSES),
        output: z
          .string()
          .nullable()
          .meta({ examples: ['Berlin'] }),
        error: z.string().nullable(),
        ...times,
      }),
    ),
    result: z
      .string()
      .nullable()
      .meta({ examples: ['Berlin, then Paris'] }),
  })
  .meta({ id: 'Swarm' });

export function presentSwarm(swarm: Swarm): z.infer<typeof swarmDetail> {
  const { createdAt, finishedAt, members, startedAt, userId: _userId, ...shown } = swarm;
  return {
    ...shown,
    progress: {
      done: members.filter(({ status }) => status === 'done').length,
      total: members.length,
    },
    members: members.map((member) => ({
      agentId: member.agentId,
      status: member.status,
      output: member.output,
      error: member.error,
      ...presentTimes(member),
    })),
    createdAt: createdAt.toISOString(),
    ...presentTimes({ startedAt, finishedAt }),
  };
}

const presentTimes = ({ finishedAt, startedAt }: Pick<Swarm, 'startedAt' | 'finishedAt'>) => ({
  startedAt: startedAt?.toISOString() ?? null,
  finishedAt: finishedAt?.toISOString() ?? null,
});

/** Returns a swarm without members and texts, which would make a list too long. */
export function presentSwarmItem(swarm: Swarm): z.infer<typeof swarmItem> {
  const { members: _members, result: _result, task: _task, ...shown } = presentSwarm(swarm);
  return shown;
}
