import { webStatus, type WebStatus } from '../agents/agents/web-status.js';
import { shownAddress } from '../money/chain/address.js';
import type { TenantDatabase } from '../platform/database/database.js';
import type { AgentStatus } from '../platform/database/models.js';
import type { SwarmStatus } from '../types/swarms.js';

export const MAX_NODES = 500;
const MAX_EDGES = 5_000;

/** Maximum number of messages counted: the newest sent ones, and the newest received ones. */
const MAX_MESSAGES = 10_000;
const MESSAGE_DAYS = 30;

/** Maximum number of newest payouts of splits that are counted. */
const MAX_PAYOUTS = 5_000;

export const NODE_TYPES = ['agent', 'swarm', 'wallet'] as const;
export const EDGE_TYPES = ['clone', 'member', 'split', 'message'] as const;

export interface FleetNode {
  readonly id: string;
  readonly type: (typeof NODE_TYPES)[number];
  readonly label: string;
  /** `external` for agents and wallets of others, `own` for wallets of the user. */
  readonly status: WebStatus | SwarmStatus | 'own' | 'external';
}

export interface FleetEdge {
  readonly from: string;
  readonly to: string;
  readonly type: (typeof EDGE_TYPES)[number];
  readonly count: number;
}

export interface FleetGraph {
  readonly nodes: readonly FleetNode[];
  readonly edges: readonly FleetEdge[];
  /** True if nodes, edges or older messages are missing because there are too many. */
  readonly truncated: boolean;
}

interface AgentRow {
  readonly id: string;
  readonly name: string;
  readonly status: AgentStatus;
  readonly parentAgentId: string | null;
}

const AGENTS = `
  SELECT id, name, status, parent_agent_id AS "parentAgentId" FROM agents
   WHERE user_id = $userId AND desired <> 'deleted'
   ORDER BY created_at, id LIMIT ${MAX_NODES + 1}`;

const SWARMS = `
  SELECT id, name, status FROM swarms WHERE user_id = $userId
   ORDER BY created_at DESC, id DESC LIMIT ${MAX_NODES + 1}`;

const MEMBERS = `
  SELECT swarm_id AS "from", agent_id AS "to" FROM swarm_members WHERE user_id = $userId
   ORDER BY swarm_id, position LIMIT ${MAX_EDGES + 1}`;

/** Returns the SQL of a user's newest messages. */
const newestMessages = (condition: string) => `
  SELECT from_agent, from_user, to_agent, to_user, created_at FROM bus_messages
   WHERE ${condition} ORDER BY id DESC LIMIT ${MAX_MESSAGES}`;

const MESSAGES = `
  SELECT from_agent AS "from", to_agent AS "to", from_user AS "fromUser", to_user AS "toUser",
         count(*)::int AS count
    FROM (SELECT * FROM (${newestMessages('from_user = $userId')}) sent
          UNION ALL
          -- Those between the user's own agents are among the sent ones.
          SELECT * FROM (${newestMessages('to_user = $userId AND from_user <> to_user')}) received) newest
   WHERE created_at > now() - interval '${MESSAGE_DAYS} days'
   GROUP BY from_agent, to_agent, from_user, to_user
   ORDER BY count(*) DESC, from_agent, to_agent LIMIT ${MAX_EDGES + 1}`;

const PAYOUTS = `
  SELECT agent_id AS "from", address AS "to", count(*)::int AS count, bool_or(is_own) AS "isOwn"
    FROM (SELECT s.agent_id, p.address, EXISTS (
                   SELECT FROM wallets w WHERE w.address = p.address AND w.user_id = $userId) AS is_own
            FROM (SELECT id, agent_id FROM royalty_splits WHERE user_id = $userId
                   ORDER BY id DESC LIMIT ${MAX_PAYOUTS}) s
            JOIN royalty_payouts p ON p.split_id = s.id
           WHERE p.status <> 'skipped' ORDER BY s.id DESC LIMIT ${MAX_PAYOUTS}) newest
   GROUP BY agent_id, address ORDER BY count(*) DESC, agent_id, address`;

type Link = Pick<FleetEdge, 'from' | 'to'>;
type Counted = Link & Pick<FleetEdge, 'count'>;
type Messages = Counted & { readonly fromUser: string; readonly toUser: string };

/** Returns a user's agents, their swarms, and the parties of their messages and splits. */
export async function fleetGraph(tenant: TenantDatabase, userId: string): Promise<FleetGraph> {
  const found = await tenant.statements(async (db) => {
    const read = <Row extends object>(sql: string) => db.query<Row>(sql, { userId });
    // Sent together: the answers take one round trip.
    const [agents, swarms, members, messages, payouts] = await Promise.all([
      read<AgentRow>(AGENTS),
      read<{ id: string; name: string; status: SwarmStatus }>(SWARMS),
      read<Link>(MEMBERS),
      read<Messages>(MESSAGES),
      read<Counted & { isOwn: boolean }>(PAYOUTS).then((all) =>
        all.map((payout) => ({ ...payout, to: shownAddress(payout.to) })),
      ),
    ]);
    return { agents, swarms, members, messages, payouts };
  });
  const { agents, members, messages, payouts, swarms } = found;
  const nodes = new Map<string, FleetNode>();
  let isCut = isFull(messages, userId);
  const add = (node: FleetNode) => {
    if (nodes.has(node.id)) return;
    if (nodes.size < MAX_NODES) nodes.set(node.id, node);
    else isCut = true;
  };
  for (const { id, name, status } of agents) {
    add({ id, type: 'agent', label: name, status: webStatus(status) });
  }
  const own = new Set(nodes.keys());
  for (const { id, name, status } of swarms) add({ id, type: 'swarm', label: name, status });
  for (const { from, fromUser, to, toUser } of messages) {
    // The other party is known only by its id.
    if (own.has(from) && toUser !== userId) add(externalAgent(to));
    if (own.has(to) && fromUser !== userId) add(externalAgent(from));
  }
  for (const { from, isOwn, to } of payouts) {
    if (own.has(from)) add(walletOf(to, isOwn));
  }
  const edges: FleetEdge[] = [
    ...agents.flatMap(({ id, parentAgentId }) =>
      parentAgentId === null
        ? []
        : [{ from: parentAgentId, to: id, type: 'clone', count: 1 } as const],
    ),
    ...members.map((link) => ({ ...link, type: 'member', count: 1 }) as const),
    ...payouts.map(({ count, from, to }) => ({ from, to, type: 'split', count }) as const),
    ...messages.map(({ count, from, to }) => ({ from, to, type: 'message', count }) as const),
  ].filter(({ from, to }) => nodes.has(from) && nodes.has(to));
  return {
    nodes: [...nodes.values()],
    edges: edges.slice(0, MAX_EDGES),
    truncated: isCut || edges.length > MAX_EDGES,
  };
}

const walletOf = (address: string, isOwn: boolean): FleetNode => ({
  id: address,
  type: 'wallet',
  label: address,
  status: isOwn ? 'own' : 'external',
});

const externalAgent = (id: string): FleetNode => ({
  id,
  type: 'agent',
  label: id,
  status: 'external',
});

/** Reports whether so many messages were counted, sent or from others, that older ones may be missing. */
function isFull(messages: readonly Messages[], userId: string): boolean {
  const total = messages.reduce((sum, { count }) => sum + count, 0);
  const sent = messages.reduce(
    (sum, { count, fromUser }) => sum + (fromUser === userId ? count : 0),
    0,
  );
  return sent >= MAX_MESSAGES || total - sent >= MAX_MESSAGES;
}
