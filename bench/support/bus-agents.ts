import { randomInt, randomUUID } from 'node:crypto';
import { generatePrivateKey, privateKeyToAccount, type PrivateKeyAccount } from 'viem/accounts';
import { grantPlan } from '../../src/accounts/accounts/subscriptions.js';
import { busText, prepared, type BusMessage } from '../../src/bus/bus-message.js';
import { Database } from '../../src/platform/database/database.js';
import { agentRow } from './agent-row.js';

/** An agent with a wallet of its own, which signs its messages. */
export interface BusAgent {
  readonly id: string;
  readonly wallet: PrivateKeyAccount;
}

/** Creates stopped agents, each of an owner with the largest plan: limits count by owner and by recipient. */
export async function makeBusAgents(databaseUrl: string, count: number): Promise<BusAgent[]> {
  const database = new Database(databaseUrl, { maxConnections: 1 });
  try {
    const agents: BusAgent[] = [];
    for (let n = 0; n < count; n++) agents.push(await makeBusAgent(database, n));
    return agents;
  } finally {
    await database.close();
  }
}

async function makeBusAgent(database: Database, n: number): Promise<BusAgent> {
  const userId = randomUUID();
  const email = `${userId}@example.org`;
  const owner = { id: userId, email, name: email, referralCode: userId.toUpperCase() };
  const agent = { ...agentRow(userId, 40_000 + n), desired: 'stopped', status: 'stopped' } as const;
  const wallet = privateKeyToAccount(generatePrivateKey());
  await database.asPlatform().transaction(async (db) => {
    await db.User.create(owner);
    await db.Agent.create(agent);
    await db.Wallet.create({
      id: agent.id,
      userId,
      agentId: agent.id,
      kind: 'agent',
      address: wallet.address.toLowerCase(),
    });
  });
  await grantPlan(database, userId, 'network', { actor: 'benchmark', requestId: userId });
  return { id: agent.id, wallet };
}

/** Returns the body of a signed message of the present time. */
export async function signedMessage(
  { id: from, wallet }: BusAgent,
  { id: to }: Pick<BusAgent, 'id'>,
): Promise<{ readonly messageId: string; readonly body: string }> {
  const message: BusMessage = {
    messageId: randomUUID(),
    action: 'BOOKING_REQUEST',
    from,
    to,
    payload: { bookingId: randomUUID(), amount: '150.00', currency: 'USDC', venue: 'Café Zürich' },
    timestamp: Math.floor(Date.now() / 1_000),
  };
  const signature = await wallet.signMessage({ message: busText(prepared(message).canonical) });
  return { messageId: message.messageId, body: JSON.stringify({ ...message, signature }) };
}

/** Returns signed messages between random agents. */
export async function signedMessages(agents: readonly BusAgent[], count: number) {
  const messages = [];
  for (let n = 0; n < count; n++) {
    const [from, to] = [randomOf(agents), randomOf(agents)];
    messages.push(await signedMessage(from, to));
  }
  return messages;
}

function randomOf<T>(list: readonly T[]): T {
  const chosen = list[randomInt(list.length)];
  if (chosen === undefined) throw new RangeError('The list is empty');
  return chosen;
}
