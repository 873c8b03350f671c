import { randomUUID } from 'node:crypto';
import type { Hex } from 'viem';
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts';
import type { Database } from '../../../src/platform/database/database.js';
import type { SecretBox } from '../../../src/platform/secrets/secret-box.js';
import type { NewSplit } from '../../../src/money/splits/royalty-splits.js';
import { sealKey } from '../../../src/money/wallets/wallet-keys.js';
import { makeAccount, type TestAccount } from '../../support/account.js';

/** 1 USDC in base units. */
export const ONE = 1_000_000n;

/** Returns a new address in lower case. */
export const newAddress = (): Hex => privateKeyToAddress(generatePrivateKey()).toLowerCase() as Hex;

/** A user with an agent and a stored wallet for the agent. */
export interface Payer extends TestAccount {
  readonly agentId: string;
  readonly wallet: Hex;
}

/**
 * Creates a user with an agent and a stored wallet.
 *
 * @param secrets seals the wallet's key.
 */
export async function makePayer(database: Database, secrets: SecretBox): Promise<Payer> {
  const account = await makeAccount(database);
  const userId = account.id;
  const agentId = await makeAgent(database, userId);
  const { address: wallet, sealedKey } = sealKey(secrets, userId);
  await database.asUser(userId).transaction((db) =>
    db.Wallet.create({
      id: randomUUID(),
      userId,
      agentId,
      kind: 'agent',
      address: wallet,
      sealedKey,
    }),
  );
  return { ...account, agentId, wallet };
}

/** Creates an agent without any resources. @returns its id. */
export async function makeAgent(database: Database, userId: string): Promise<string> {
  const id = randomUUID();
  await database.asUser(userId).transaction((db) =>
    db.Agent.create({
      id,
      userId,
      name: `agent ${id}`,
      plan: 'solo',
      host: 'local',
      subdomain: id,
      model: 'gpt-4',
      aiProvider: 'openai',
      config: {},
    }),
  );
  return id;
}

/** Returns a split in equal shares for new recipients. */
export function splitOf(
  { id: userId, agentId, wallet: fromAddress }: Payer,
  recipients: number,
  totalAmount = ONE,
): NewSplit {
  const share = 1_000_000n / BigInt(recipients);
  const first = 1_000_000n - share * BigInt(recipients - 1);
  return {
    userId,
    agentId,
    fromAddress,
    totalAmount,
    name: 'a song',
    recipients: Array.from({ length: recipients }, (_, position) => ({
      address: newAddress(),
      share: position === 0 ? first : share,
    })),
  };
}
