export const SWARM_STRATEGIES = ['parallel', 'sequential'] as const;
export type SwarmStrategy = (typeof SWARM_STRATEGIES)[number];

export const SWARM_STATUSES = ['pending', 'running', 'completed', 'failed', 'cancelled'] as const;
export type SwarmStatus = (typeof SWARM_STATUSES)[number];

export const MEMBER_STATUSES = ['waiting', 'running', 'done', 'failed'] as const;
export type MemberStatus = (typeof MEMBER_STATUSES)[number];

/** State of the coordinator's turn that merges the answers. */
export type MergeState = 'running' | 'done' | 'failed';

export const SWARM_ACTIONS = ['cancel', 'retry'] as const;
export type SwarmAction = (typeof SWARM_ACTIONS)[number];

/** A turn of a swarm: of a member by its position, or of the coordinator. */
export interface SwarmTurnRef {
  readonly swarmId: string;
  readonly round: number;
  readonly part: number | 'merge';
}

const TURN_ID = /^(.+)\/(\d+)\/(\d+|merge)$/;

/** Returns the id of a turn; an agent receives at most one question per id. */
export const swarmTurnId = ({ part, round, swarmId }: SwarmTurnRef): string =>
  `${swarmId}/${round}/${part}`;

/** Returns the turn of an id. @throws TypeError for another id */
export function parseSwarmTurnId(id: string): SwarmTurnRef {
  const [, swarmId, round, part] = TURN_ID.exec(id) ?? [];
  if (swarmId === undefined || part === undefined) throw new TypeError('not the id of a turn');
  return { swarmId, round: Number(round), part: part === 'merge' ? part : Number(part) };
}

/** Returns the conversation of a swarm with each of its agents. */
export const swarmConversation = (swarmId: string): string => `swarm-${swarmId}`;
