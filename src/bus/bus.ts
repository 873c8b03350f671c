import type { Hex } from 'viem';
import { isAdmin, type AdminAttributes, type AdminRules } from '../accounts/accounts/admin.js';
import type { Database } from '../platform/database/database.js';
import { UnauthorizedError } from '../lib/errors.js';
import type { Chain } from '../money/chain/chain-node.js';
import {
  isOfKeyLength,
  isSignedByWallet,
  recoveredSigner,
} from '../money/chain/wallet-signature.js';
import type { Plan } from '../types/plans.js';
import type { BusAcceptance } from './bus-acceptance.js';
import { busText, prepared, type BusMessage } from './bus-message.js';

/** Maximum number of seconds by which a message's timestamp may differ from the clock, either way. */
const MAX_AGE_S = 300;

/** Gas of a contract that verifies a signature. */
const SIGNATURE_GAS = 2_000_000n;

/** Signatures that a contract may verify: longer than a key's. */
const CONTRACT_SIGNATURE = /^0x[\da-fA-F]{132,8192}$/;

interface Parts {
  readonly database: Database;
  readonly chain: Chain;
  readonly acceptance: Pick<BusAcceptance, 'accept'>;
  readonly accounts: AdminRules;
}

/** An agent with its wallet and its owner, found in one round trip. */
interface Sender extends AdminAttributes {
  readonly userId: string;
  readonly plan: Plan | null;
  readonly address: Hex;
  readonly isContract: boolean;
}

/** The entrance of the bus: signed messages between agents. */
export class Bus {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /**
   * Stores a signed message for its delivery. The same message again changes nothing.
   * @param client the client that the chain is queried for: anybody can name another's agent as sender.
   * @throws UnauthorizedError; ChainAwayError if a contract must verify the signature; as `BusAcceptance.accept`
   */
  async send(message: BusMessage, signature: string, client: string): Promise<void> {
    const ready = prepared(message);
    if (Math.abs(Date.now() / 1_000 - message.timestamp) > MAX_AGE_S) throw invalidSignature();
    const signed = { text: busText(ready.canonical), signature };
    const sender = await this.#senderOf(message.from, signed, client);
    const { acceptance, accounts } = this.#parts;
    const { plan, userId } = sender;
    const owner = { userId, isAdmin: isAdmin(sender, accounts), plan: plan ?? undefined };
    await acceptance.accept(ready, owner);
  }

  /** Returns the sender that signed the text. A signature that no wallet made costs no query. */
  async #senderOf(
    agentId: string,
    { signature, text }: { readonly text: string; readonly signature: string },
    client: string,
  ): Promise<Sender> {
    if (!isHex(signature)) throw invalidSignature();
    if (isOfKeyLength(signature)) {
      const signer = await recoveredSigner(text, signature);
      const sender = signer && (await this.#findSender(agentId));
      if (sender?.address !== signer || sender === undefined) throw invalidSignature();
      return sender;
    }
    if (!CONTRACT_SIGNATURE.test(signature)) throw invalidSignature();
    const sender = await this.#findSender(agentId);
    if (!sender?.isContract) throw invalidSignature();
    const queries = this.#parts.chain.onBehalfOf({ owner: client, isUrgent: true });
    const signed = { address: sender.address, text, signature };
    if (!(await isSignedByWallet(signed, queries, SIGNATURE_GAS))) throw invalidSignature();
    return sender;
  }

  async #findSender(agentId: string): Promise<Sender | undefined> {
    const [sender] = await this.#parts.database.asPlatform().query<Sender>(
      `SELECT a.user_id AS "userId", w.address, w.is_contract AS "isContract", u.email,
              u.email_verified_at IS NOT NULL AS "emailVerified", u.is_admin AS "isAdmin", p.plan
         FROM agents a JOIN wallets w ON w.agent_id = a.id AND w.user_id = a.user_id
         JOIN users u ON u.id = a.user_id
         LEFT JOIN LATERAL current_subscription(u.id, 'plan') p ON p.holds
        WHERE a.id = $agentId AND a.desired <> 'deleted' AND w.suspended_at IS NULL`,
      { agentId },
    );
    return sender;
  }
}

const isHex = (text: string): text is Hex => /^0x(?:[\da-fA-F]{2})+$/.test(text);

const invalidSignature = () => new UnauthorizedError('Invalid signature');
