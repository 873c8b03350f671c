import { randomUUID } from 'node:crypto';
import type { Hex } from 'viem';
import { isSignedByKey, isSignedByWallet } from '../chain/wallet-signature.js';
import { recordAudit } from '../../platform/audit/audit.js';
import type { Requester } from '../../platform/audit/requester.js';
import type { Chain } from '../chain/chain-node.js';
import type { Statements } from '../../platform/database/database.js';
import { ConflictError, NotFoundError, UnauthorizedError } from '../../lib/errors.js';
import type { SecretBox } from '../../platform/secrets/secret-box.js';
import { sealKey } from './wallet-keys.js';

/** Maximum number of wallets of one user's agents, removed agents included: keys are kept longer than agents. */
export const MAX_AGENT_WALLETS = 1_000;

export interface WalletOwner {
  readonly userId: string;
  readonly agentId: string;
}

/** A wallet that an agent already has outside the platform. */
export interface ExternalWallet {
  /** Address in lower case. */
  readonly address: Hex;
  /** EIP-191 signature of `broughtWalletText`, in lower-case hex. */
  readonly signature: Hex;
}

/** The text that an agent's own wallet signs to prove ownership. */
export const broughtWalletText = ({ userId, agentId }: WalletOwner, address: Hex): string =>
  ['agent-platform-wallet:v1', userId, agentId, address].join('\n');

export interface ProvidedWallet {
  readonly address: Hex;
  readonly isNew: boolean;
}

interface Parts {
  readonly secrets: SecretBox;
  /** The chain on which the signatures of contract wallets are verified. */
  readonly chain: Chain;
}

/** Wallets of agents: at most one for each. */
export class AgentWallets {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /**
   * Returns the agent's wallet, stores the wallet that the agent brings, or creates a wallet.
   *
   * @throws NotFoundError without such an agent; UnauthorizedError for an invalid signature; ConflictError
   *   beyond `MAX_AGENT_WALLETS`; ChainAwayError if a contract wallet must be called.
   */
  async provide(
    by: Requester,
    owner: WalletOwner,
    brought: ExternalWallet | undefined,
  ): Promise<ProvidedWallet> {
    const { secrets, chain } = this.#parts;
    const known = await findAgentWallet(by.tenant, owner);
    if (known !== undefined) return { address: known, isNew: false };
    let isContract = false;
    if (brought) {
      const text = broughtWalletText(owner, brought.address);
      isContract = !(await isSignedByKey({ ...brought, text }));
      const queries = chain.onBehalfOf({ owner: owner.userId, isUrgent: true });
      if (isContract && !(await isSignedByWallet({ ...brought, text }, queries))) {
        throw new UnauthorizedError('Invalid signature');
      }
    }
    const { agentId, userId } = owner;
    return by.tenant.transaction(async (db) => {
      // The lock lets the second of two concurrent requests find the first one's wallet, and keeps the
      // limit exact.
      await db.lock(`agent-wallets:${userId}`);
      const concurrent = await findAgentWallet(db, owner);
      if (concurrent !== undefined) return { address: concurrent, isNew: false };
      const current = await db.Wallet.count({ where: { userId, kind: 'agent' } });
      if (current >= MAX_AGENT_WALLETS) {
        const facts = { current, limit: MAX_AGENT_WALLETS };
        throw new ConflictError('Too many agent wallets', 'WALLET_LIMIT_REACHED', facts);
      }
      const made = brought
        ? { address: brought.address, sealedKey: null, isContract }
        : sealKey(secrets, userId);
      await db.Wallet.create({ id: randomUUID(), ...owner, kind: 'agent', ...made });
      const { actor, requestId } = by;
      await recordAudit(db, {
        actor,
        userId,
        requestId,
        action: 'wallet.create',
        subject: made.address,
        detail: { agentId, kind: 'agent', kept: !brought },
      });
      return { address: made.address, isNew: true };
    });
  }
}

/**
 * Finds the wallet of an agent.
 *
 * @throws NotFoundError if the requester has no such agent of that user, or the agent is being removed.
 */
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

/** Reports whether a user has a wallet with this address, of any kind. @param address in lower case. */
export async function hasWallet(db: Statements, userId: string, address: Hex): Promise<boolean> {
  const [row] = await db.query<{ has: boolean }>(
    `SELECT EXISTS (SELECT FROM wallets WHERE user_id = $userId AND address = $address) AS has`,
    { userId, address },
  );
  return row?.has === true;
}

/** Returns the agent's wallet if its key is stored here, so that it can sign. */
export async function storedWalletOf(
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
