import type { MemberStatus, SwarmStrategy } from '../types/swarms.js';

/**
 * Returns how many answers go from one agent to another in a round, at most: those of members that are to be
 * asked go to the coordinator, or each is asked with the answer of the member before.
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
