import { randomUUID } from 'node:crypto';
import type { Hex } from 'viem';
import { isSignedByWallet } from '../chain/wallet-signature.js';
import { recordAudit } from '../../platform/audit/audit.js';
import type { Requester } from '../../platform/audit/requester.js';
import type { ChainNode } from '../chain/chain-node.js';
import type { Statements } from '../../platform/database/database.js';
import { ConflictError, NotFoundError, UnauthorizedError } from '../../lib/errors.js';
import type { SecretBox } from '../../platform/secrets/secret-box.js';
import { sealKey } from './wallet-keys.js';

/** Wallets of one user's agents, those included that are removed: keys are kept for longer than agents. */
export const MAX_AGENT_WALLETS = 1_000;

/** Whose wallet it is to be. */
export interface WalletOwner {
  readonly userId: string;
  readonly agentId: string;
}

/** A wallet that an agent brings. */
export interface BroughtWallet {
  /** In lower case. */
  readonly address: Hex;
  /** EIP-191, over `broughtWalletText`; in hex, lower case. */
  readonly signature: Hex;
}

/** What a wallet signs that an agent brings. */
export const broughtWalletText = ({ userId, agentId }: WalletOwner, address: Hex): string =>
  ['agent-platform-wallet:v1', userId, agentId, address].join('\n');

/** An agent's wallet, and whether it was made just now. */
export interface ProvidedWallet {
  readonly address: Hex;
  readonly isNew: boolean;
}

interface Parts {
  readonly secrets: SecretBox;
  /** Where wallets that are contracts are asked. */
  readonly chain: ChainNode;
}

/** Wallets of agents: each has one at most. */
export class AgentWallets {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /**
   * Gives an agent its wallet: the one that it has, or that it brings, or else a new one whose key is
   * kept here.
   *
   * @throws NotFoundError when the requester has no such agent of that user; UnauthorizedError for a
   *   wallet that has not signed; ConflictError beyond `MAX_AGENT_WALLETS`; ChainAwayError when a
   *   contract would have to be asked.
   */
  async provide(
    by: Requester,
    owner: WalletOwner,
    brought: BroughtWallet | undefined,
  ): Promise<ProvidedWallet> {
    const { secrets, chain } = this.#parts;
    const known = await findAgentWallet(by.tenant, owner);
    if (known !== undefined) return { address: known, isNew: false };
    if (brought) {
      const text = broughtWalletText(owner, brought.address);
      if (!(await isSignedByWallet({ ...brought, text }, chain))) {
        throw new UnauthorizedError('Invalid signature');
      }
    }
    const { agentId, userId } = owner;
    return by.tenant.transaction(async (db) => {
      // Of two at once the second finds what the first has made; two at the bound admit one.
      await db.lock(`agent-wallets:${userId}`);
      const meanwhile = await findAgentWallet(db, owner);
      if (meanwhile !== undefined) return { address: meanwhile, isNew: false };
      const current = await db.Wallet.count({ where: { userId, kind: 'agent' } });
      if (current >= MAX_AGENT_WALLETS) {
        const facts = { current, limit: MAX_AGENT_WALLETS };
        throw new ConflictError('Too many wallets of agents', facts);
      }
      const made = brought
        ? { address: brought.address, sealedKey: null }
        : sealKey(secrets, userId);
      await db.Wallet.create({ id: randomUUID(), ...owner, kind: 'agent', ...made });
      const { actor, requestId } = by;
      await recordAudit(db, {
        ...{ actor, userId, requestId, action: 'wallet.create', subject: made.address },
        detail: { agentId, kind: 'agent', kept: !brought },
      });
      return { address: made.address, isNew: true };
    });
  }
}

/** @throws NotFoundError when whoever asks has no such agent of that user, or it is being removed. */
async function findAgentWallet(
  db: Statements,
  { agentId, userId }: WalletOwner,
): Promise<Hex | undefined> {
  const [found] = await db.query<{ address: Hex | null }>(
    `SELECT w.address FROM agents a LEFT JOIN wallets w ON w.agent_id = a.id
      WHERE a.id = $agentId AND a.user_id = $userId AND a.desired <> 'deleted'`,
    { agentId, userId },
  );
  if (!found) throw new NotFoundError('Agent not found');
  return found.address ?? undefined;
}

/** Whether a user has a wallet of this address, of whichever sort. @param address in lower case. */
export async function hasWallet(db: Statements, userId: string, address: Hex): Promise<boolean> {
  const [row] = await db.query<{ has: boolean }>(
    `SELECT EXISTS (SELECT FROM wallets WHERE user_id = $userId AND address = $address) AS has`,
    { userId, address },
  );
  return row?.has === true;
}

/** The agent's wallet if its key is kept here, so that it can be signed with. */
export async function keptWalletOf(
  db: Statements,
  { agentId, userId }: WalletOwner,
): Promise<Hex | undefined> {
  const [wallet] = await db.query<{ readonly address: Hex }>(
    `SELECT address FROM wallets
      WHERE agent_id = $agentId AND user_id = $userId AND sealed_key IS NOT NULL`,
    { agentId, userId },
  );
  return wallet?.address;
}
