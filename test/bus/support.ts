import { randomUUID } from 'node:crypto';
import canonicalize from 'canonicalize';
import { generatePrivateKey, privateKeyToAccount, type PrivateKeyAccount } from 'viem/accounts';
import { grantPlan } from '../../src/accounts/accounts/subscriptions.js';
import type { BusMessage } from '../../src/bus/bus-message.js';
import type { Plan } from '../../src/types/plans.js';
import { walletSite, type Person, type WalletSite } from '../money/wallets/support.js';
import { queryRows } from '../platform/database/catalog.js';
import type { Answer } from '../support/http.js';

export const SEND = '/api/underground/bus/send';

/** An agent with its own wallet. */
export interface BusAgent {
  readonly id: string;
  readonly owner: Person;
  readonly wallet: PrivateKeyAccount;
}

export interface BusSite extends WalletSite {
  /** Creates an agent with a brought wallet, of a new owner with a plan unless given. */
  agent(options?: { readonly owner?: Person; readonly plan?: Plan | null }): Promise<BusAgent>;
  /** Posts any body to the entrance of the bus, without a bearer. */
  post(body: unknown): Promise<Answer>;
  /** Signs and sends a message. @returns the message and the answer. */
  send(
    from: BusAgent,
    to: Pick<BusAgent, 'id'>,
    parts?: Partial<BusMessage>,
  ): Promise<{ readonly message: BusMessage; readonly answer: Answer }>;
  rows<Row extends object>(sql: string): Promise<Row[]>;
}

export async function busSite(
  env: Readonly<Record<string, string | undefined>> = {},
): Promise<BusSite> {
  const site = await walletSite({ TRUSTED_PROXIES: '127.0.0.1', ...env });
  const rows = <Row extends object>(sql: string) => queryRows<Row>(site.database.ownerUrl, sql);
  const post = (body: unknown) =>
    site.backend(undefined, 'POST', SEND, { body, headers: { authorization: '' } });
  return {
    ...site,
    rows,
    post,
    async agent({ owner: given, plan = 'network' } = {}) {
      const owner = given ?? (await site.person());
      if (plan !== null) {
        await grantPlan(site.database.db, owner.id, plan, { actor: 'test', requestId: 'test' });
      }
      const id = await site.agentOf(owner);
      const wallet = privateKeyToAccount(generatePrivateKey());
      const address = wallet.address.toLowerCase();
      await rows(
        `INSERT INTO wallets (id, user_id, agent_id, kind, address, created_at)
         VALUES ('${id}', '${owner.id}', '${id}', 'agent', '${address}', now())`,
      );
      return { id, owner, wallet };
    },
    async send(from, to, parts = {}) {
      const message = messageOf(from, to, parts);
      return { message, answer: await post(await signed(from, message)) };
    },
  };
}

export const messageOf = (
  from: Pick<BusAgent, 'id'>,
  to: Pick<BusAgent, 'id'>,
  parts: Partial<BusMessage> = {},
): BusMessage => ({
  messageId: randomUUID(),
  action: 'BOOKING_REQUEST',
  from: from.id,
  to: to.id,
  payload: { note: 'hello' },
  timestamp: Math.floor(Date.now() / 1_000),
  ...parts,
});

/** Returns the text that a sender signs. */
export const textOf = (message: object): string =>
  `agent-platform-bus:v1\n${canonicalize(message)}`;

export const signed = async ({ wallet }: Pick<BusAgent, 'wallet'>, message: object) => ({
  ...message,
  signature: await wallet.signMessage({ message: textOf(message) }),
});
