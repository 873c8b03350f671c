import type { MemberStatus, SwarmStrategy } from '../types/swarms.js';

/**
 * Returns the maximum number of answers that agents pass to each other in a round: in parallel, those of all
 * unfinished members to the coordinator; in sequence, one to each unfinished member but the first.
 */
export function messagesOf(
  { coordinatorId, strategy }: { readonly coordinatorId: string; readonly strategy: SwarmStrategy },
  members: readonly {
    readonly agentId: string;
    readonly position: number;
    readonly status: MemberStatus;
  }[],
): number {
  const remaining = members.filter(({ status }) => status !== 'done');
  return strategy === 'parallel'
    ? remaining.filter(({ agentId }) => agentId !== coordinatorId).length
    : remaining.filter(({ position }) => position > 0).length;
}
